use super::*;

keys! {
    /// Logins, access rules and TLS.
    SECURITY:
    "authorizer.class.name", String, "", Any, ReadOnly, Ignored,
        "Class that decides who may do what; this version has none, so everyone may.";
    "allow.everyone.if.no.acl.found", Boolean, none, Any, ReadOnly, Ignored,
        "Whether what no access rule mentions is allowed; must be true where an authorizer is named.";
    "super.users", String, none, Any, ReadOnly, Ignored,
        "Principals that may do everything.";
    "principal.builder.class", Class, "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", Any, PerBroker, Ignored,
        "Class that turns a login into a principal.";
    "delegation.token.expiry.check.interval.ms", Long, "3600000", AtLeast(1), ReadOnly, Ignored,
        "How often expired delegation tokens are looked for.";
    "delegation.token.expiry.time.ms", Long, "86400000", AtLeast(1), ReadOnly, Ignored,
        "How long a delegation token holds before it must be renewed.";
    "delegation.token.max.lifetime.ms", Long, "604800000", AtLeast(1), ReadOnly, Ignored,
        "Longest life of a delegation token.";
    "delegation.token.secret.key", Password, none, Any, ReadOnly, Ignored,
        "Secret that delegation tokens are signed with.";
    "security.providers", String, none, Any, ReadOnly, Ignored,
        "Classes that add security algorithms to the Java machine.";
    "sasl.client.callback.handler.class", Class, none, Any, ReadOnly, Ignored,
        "Class that answers a SASL client's questions.";
    "sasl.enabled.mechanisms", List, "GSSAPI", Any, PerBroker, Ignored,
        "SASL mechanisms offered to clients.";
    "sasl.jaas.config", Password, none, Any, PerBroker, Ignored,
        "Login modules with their options, as JAAS writes them.";
    "sasl.kerberos.kinit.cmd", String, "/usr/bin/kinit", Any, PerBroker, Ignored,
        "Where the command kinit is.";
    "sasl.kerberos.min.time.before.relogin", Long, "60000", Any, PerBroker, Ignored,
        "Pause between two Kerberos logins, in milliseconds.";
    "sasl.kerberos.principal.to.local.rules", List, "DEFAULT", Any, PerBroker, Ignored,
        "Rules that shorten Kerberos principals to user names.";
    "sasl.kerberos.service.name", String, none, Any, PerBroker, Ignored,
        "Kerberos name of this service.";
    "sasl.kerberos.ticket.renew.jitter", Double, "0.05", Any, PerBroker, Ignored,
        "Random part of the time of a ticket's renewal.";
    "sasl.kerberos.ticket.renew.window.factor", Double, "0.8", Any, PerBroker, Ignored,
        "Part of a ticket's life after which it is renewed.";
    "sasl.login.callback.handler.class", Class, none, Any, ReadOnly, Ignored,
        "Class that answers a SASL login's questions.";
    "sasl.login.class", Class, none, Any, ReadOnly, Ignored,
        "Class that logs in.";
    "sasl.login.connect.timeout.ms", Int, none, Any, ReadOnly, Ignored,
        "How long a connection to the identity provider may take.";
    "sasl.login.read.timeout.ms", Int, none, Any, ReadOnly, Ignored,
        "How long an answer of the identity provider may take.";
    "sasl.login.refresh.buffer.seconds", Short, "300", Any, PerBroker, Ignored,
        "Time before its end by which a credential is renewed.";
    "sasl.login.refresh.min.period.seconds", Short, "60", Any, PerBroker, Ignored,
        "Least time between two renewals of a credential.";
    "sasl.login.refresh.window.factor", Double, "0.8", Any, PerBroker, Ignored,
        "Part of a credential's life after which it is renewed.";
    "sasl.login.refresh.window.jitter", Double, "0.05", Any, PerBroker, Ignored,
        "Random part of the time of a credential's renewal.";
    "sasl.login.retry.backoff.max.ms", Long, "10000", Any, ReadOnly, Ignored,
        "Longest pause between two tries to log in.";
    "sasl.login.retry.backoff.ms", Long, "100", Any, ReadOnly, Ignored,
        "First pause between two tries to log in.";
    "sasl.mechanism.controller.protocol", String, "GSSAPI", Any, ReadOnly, Ignored,
        "SASL mechanism towards controllers.";
    "sasl.mechanism.inter.broker.protocol", String, "GSSAPI", Any, PerBroker, Ignored,
        "SASL mechanism towards other brokers.";
    "sasl.oauthbearer.assertion.algorithm", String, "RS256", OneOfAnyCase(&["ES256", "RS256"]), ReadOnly, Ignored,
        "Algorithm that signs an assertion.";
    "sasl.oauthbearer.assertion.claim.aud", String, none, Any, ReadOnly, Ignored,
        "Audience named in an assertion.";
    "sasl.oauthbearer.assertion.claim.exp.seconds", Int, "300", Between(0, 86_400), ReadOnly, Ignored,
        "How long an assertion holds.";
    "sasl.oauthbearer.assertion.claim.iss", String, none, Any, ReadOnly, Ignored,
        "Issuer named in an assertion.";
    "sasl.oauthbearer.assertion.claim.jti.include", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether an assertion carries an id of its own.";
    "sasl.oauthbearer.assertion.claim.nbf.seconds", Int, "60", Between(0, 3600), ReadOnly, Ignored,
        "How far before now an assertion begins to hold.";
    "sasl.oauthbearer.assertion.claim.sub", String, none, Any, ReadOnly, Ignored,
        "Subject named in an assertion.";
    "sasl.oauthbearer.assertion.file", String, none, Any, ReadOnly, Ignored,
        "File with a finished assertion.";
    "sasl.oauthbearer.assertion.private.key.file", String, none, Any, ReadOnly, Ignored,
        "File with the key that signs assertions.";
    "sasl.oauthbearer.assertion.private.key.passphrase", Password, none, Any, ReadOnly, Ignored,
        "Passphrase of the key that signs assertions.";
    "sasl.oauthbearer.assertion.template.file", String, none, Any, ReadOnly, Ignored,
        "File with headers and claims that assertions start from.";
    "sasl.oauthbearer.client.credentials.client.id", String, none, Any, ReadOnly, Ignored,
        "Name of this client at the identity provider.";
    "sasl.oauthbearer.client.credentials.client.secret", Password, none, Any, ReadOnly, Ignored,
        "Secret of this client at the identity provider.";
    "sasl.oauthbearer.clock.skew.seconds", Int, "30", Any, ReadOnly, Ignored,
        "How far the identity provider's clock may be off.";
    "sasl.oauthbearer.expected.audience", List, "", Any, ReadOnly, Ignored,
        "Audiences a token must name one of.";
    "sasl.oauthbearer.expected.issuer", String, none, Any, ReadOnly, Ignored,
        "Issuer a token must name.";
    "sasl.oauthbearer.jwks.endpoint.refresh.ms", Long, "3600000", Any, ReadOnly, Ignored,
        "How often the identity provider's keys are fetched anew.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Long, "10000", Any, ReadOnly, Ignored,
        "Longest pause between two tries to fetch the identity provider's keys.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Long, "100", Any, ReadOnly, Ignored,
        "First pause between two tries to fetch the identity provider's keys.";
    "sasl.oauthbearer.jwks.endpoint.url", String, none, Any, ReadOnly, Ignored,
        "Where the identity provider's keys are.";
    "sasl.oauthbearer.jwt.retriever.class", Class, "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", Any, ReadOnly, Ignored,
        "Class that fetches tokens.";
    "sasl.oauthbearer.jwt.validator.class", Class, "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", Any, ReadOnly, Ignored,
        "Class that checks tokens.";
    "sasl.oauthbearer.scope", String, none, Any, ReadOnly, Ignored,
        "Scope asked for in a token.";
    "sasl.oauthbearer.scope.claim.name", String, "scope", Any, ReadOnly, Ignored,
        "Claim of a token that holds its scope.";
    "sasl.oauthbearer.sub.claim.name", String, "sub", Any, ReadOnly, Ignored,
        "Claim of a token that holds its subject.";
    "sasl.oauthbearer.token.endpoint.url", String, none, Any, ReadOnly, Ignored,
        "Where tokens are asked for.";
    "sasl.server.callback.handler.class", Class, none, Any, ReadOnly, Ignored,
        "Class that answers a SASL server's questions.";
    "sasl.server.max.receive.size", Int, "524288", Any, ReadOnly, Ignored,
        "Longest request before a login is complete, in bytes.";
    "ssl.allow.dn.changes", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether a renewed certificate may have another name.";
    "ssl.allow.san.changes", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether a renewed certificate may have other alternative names.";
    "ssl.cipher.suites", List, "", Any, PerBroker, Ignored,
        "Cipher suites offered; none: the library's choice.";
    "ssl.client.auth", String, "none", OneOf(&["required", "requested", "none"]), PerBroker, Ignored,
        "Whether clients show a certificate: required, requested or none.";
    "ssl.enabled.protocols", List, "TLSv1.2,TLSv1.3", Any, PerBroker, Ignored,
        "TLS versions offered.";
    "ssl.endpoint.identification.algorithm", String, "https", Any, PerBroker, Ignored,
        "How a server's name is checked against its certificate.";
    "ssl.engine.factory.class", Class, none, Any, PerBroker, Ignored,
        "Class that makes TLS engines.";
    "ssl.key.password", Password, none, Any, PerBroker, Ignored,
        "Password of the private key.";
    "ssl.keymanager.algorithm", String, "SunX509", Any, PerBroker, Ignored,
        "Algorithm of the Java key manager.";
    "ssl.keystore.certificate.chain", Password, none, Any, PerBroker, Ignored,
        "Certificate chain, in the form ssl.keystore.type says.";
    "ssl.keystore.key", Password, none, Any, PerBroker, Ignored,
        "Private key, in the form ssl.keystore.type says.";
    "ssl.keystore.location", String, none, Any, PerBroker, Ignored,
        "File of the key store.";
    "ssl.keystore.password", Password, none, Any, PerBroker, Ignored,
        "Password of the key store.";
    "ssl.keystore.type", String, "JKS", Any, PerBroker, Ignored,
        "Form of the key store: JKS, PKCS12 or PEM.";
    "ssl.principal.mapping.rules", String, "DEFAULT", Any, ReadOnly, Ignored,
        "Rules that shorten a certificate's name to a user name.";
    "ssl.protocol", String, "TLSv1.3", Any, PerBroker, Ignored,
        "TLS version preferred.";
    "ssl.provider", String, none, Any, PerBroker, Ignored,
        "Java security provider used for TLS.";
    "ssl.secure.random.implementation", String, none, Any, PerBroker, Ignored,
        "Java source of randomness used for TLS.";
    "ssl.trustmanager.algorithm", String, "PKIX", Any, PerBroker, Ignored,
        "Algorithm of the Java trust manager.";
    "ssl.truststore.certificates", Password, none, Any, PerBroker, Ignored,
        "Trusted certificates, in the form ssl.truststore.type says.";
    "ssl.truststore.location", String, none, Any, PerBroker, Ignored,
        "File of the trust store.";
    "ssl.truststore.password", Password, none, Any, PerBroker, Ignored,
        "Password of the trust store.";
    "ssl.truststore.type", String, "JKS", Any, PerBroker, Ignored,
        "Form of the trust store: JKS, PKCS12 or PEM.";
}
