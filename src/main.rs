/// Much of what a request allocates on one core is freed on another: this allocator takes no lock for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    onrush::cli::main()
}
