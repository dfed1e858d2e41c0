/// Defines why one operation refuses: variants named after Kafka's error codes with their numbers, each with a sentence for the client.
macro_rules! refusal {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant(String),)+
        }
        impl $name {
            /// Kafka's error code.
            pub fn code(&self) -> i16 {
                match self {
                    $($name::$variant(_) => $code,)+
                }
            }
            /// What is wrong, in one sentence.
            pub fn message(&self) -> &str {
                match self {
                    $($name::$variant(message) => message,)+
                }
            }
        }
    };
}
pub(super) use refusal;
