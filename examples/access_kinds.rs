//! One function for each kind of memory access, to be traced: `access_kinds NAME` calls the
//! function `kind_NAME` once.
//!
//! Each is written in assembly, so that its store and load pairs are known exactly; the tests of
//! `stackphase trace` hold them. `access_kinds --list` prints the names this processor can run.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kinds {
    use std::arch::global_asm;

    // The functions share one area, aligned to two pages, of which nothing is written before.
    global_asm!(
        ".pushsection .bss.kinds,\"aw\",@nobits",
        ".p2align 13",
        "area: .zero 16384",
        ".popsection",
        ".pushsection .tbss.kinds,\"awT\",@nobits",
        ".p2align 6",
        "slot: .zero 64",
        ".popsection",
        ".pushsection .rodata.kinds,\"a\"",
        ".p2align 6",
        // Lanes 0 and 2 of four.
        "lanes: .long -1, 0, -1, 0",
        // Bytes 1 and 2 of sixteen.
        "bytes: .byte 0, 0x80, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
        "indices: .long 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60",
        ".popsection",
    );

    macro_rules! kinds {
        ($($(#[$meta:meta])* $name:ident $(if $feature:tt)? { $($line:literal)* })*) => {
            $(global_asm!(
                concat!(".globl kind_", stringify!($name)),
                concat!(".type kind_", stringify!($name), ",@function"),
                concat!("kind_", stringify!($name), ":"),
                $($line,)*
                concat!(".size kind_", stringify!($name), ", . - kind_", stringify!($name)),
            );)*
            mod symbols {
                unsafe extern "C" {
                    $(#[link_name = concat!("kind_", stringify!($name))] pub fn $name();)*
                }
            }
            /// Name, function, and whether this processor can run it.
            pub fn all() -> Vec<(&'static str, unsafe extern "C" fn(), bool)> {
                vec![$((
                    stringify!($name),
                    symbols::$name as unsafe extern "C" fn(),
                    true $(&& std::arch::is_x86_feature_detected!($feature))?,
                )),*]
            }
        };
    }

    kinds! {
        whole {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "mov rcx, [rdi]"
            "ret"
        }
        inner {
            "lea rdi, [rip + area]"
            "mov [rdi + 8], rax"
            "movzx ecx, byte ptr [rdi + 11]"
            "ret"
        }
        two_halves {
            "lea rdi, [rip + area]"
            "mov dword ptr [rdi], eax"
            "mov dword ptr [rdi + 4], eax"
            "mov rcx, [rdi]"
            "ret"
        }
        older_bytes {
            "lea rdi, [rip + area]"
            "mov dword ptr [rdi + 4], eax"
            "mov rcx, [rdi]"
            "ret"
        }
        overlapping_stores {
            "lea rdi, [rip + area]"
            "movups [rdi], xmm0"
            "movups [rdi + 8], xmm0"
            "movups xmm1, [rdi + 8]"
            "movups xmm1, [rdi + 4]"
            "ret"
        }
        page_crossing {
            "lea rdi, [rip + area]"
            "movups [rdi + 4096 - 8], xmm0"
            "mov rcx, [rdi + 4096 - 4]"
            "ret"
        }
        push_pop {
            "push rax"
            "pop rcx"
            "ret"
        }
        call_return {
            "call 2f"
            "ret"
            "2: ret"
        }
        push_from_memory {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "push qword ptr [rdi]"
            "pop rcx"
            "ret"
        }
        pop_to_stack {
            "push rax"
            "push rcx"
            // Reads at the stack pointer, writes eight above it: where the first push wrote.
            "pop qword ptr [rsp]"
            "pop rdx"
            "ret"
        }
        frame {
            "push rbp"
            "mov rbp, rsp"
            "sub rsp, 32"
            "leave"
            "ret"
        }
        flags {
            "pushfq"
            "popfq"
            "ret"
        }
        read_modify_write {
            "lea rdi, [rip + area]"
            "mov ecx, 5"
            "2: add qword ptr [rdi], 1"
            "dec ecx"
            "jnz 2b"
            "ret"
        }
        exchange {
            "lea rdi, [rip + area]"
            "xchg [rdi], rax"
            "lock xadd [rdi], rax"
            "lock cmpxchg [rdi], rcx"
            "mov rcx, [rdi]"
            "ret"
        }
        bit_string {
            "lea rdi, [rip + area]"
            "mov eax, 100"
            "bts [rdi], rax"
            "mov rcx, [rdi + 8]"
            "ret"
        }
        thread_local {
            "mov qword ptr fs:[slot@tpoff], rax"
            "mov rcx, qword ptr fs:[0]"
            "lea rcx, [rcx + slot@tpoff]"
            "mov rdx, [rcx]"
            "ret"
        }
        string_copy {
            "lea rdi, [rip + area]"
            "lea rsi, [rdi + 256]"
            "mov ecx, 16"
            "rep movsb"
            "movups xmm0, [rdi - 16]"
            "ret"
        }
        string_fill {
            "lea rdi, [rip + area]"
            "mov ecx, 3"
            "rep stosq"
            "movups xmm0, [rdi - 24]"
            "ret"
        }
        string_nothing {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "xor ecx, ecx"
            "rep stosb"
            "mov rcx, [rdi]"
            "ret"
        }
        string_load {
            "lea rsi, [rip + area]"
            "mov [rsi], rax"
            "lodsd"
            "ret"
        }
        string_compare {
            "lea rdi, [rip + area]"
            "lea rsi, [rdi + 64]"
            "mov word ptr [rdi], 0"
            "mov word ptr [rsi], 0"
            "mov ecx, 2"
            "repe cmpsb"
            "ret"
        }
        x87 {
            "lea rdi, [rip + area]"
            "fld1"
            "fstp tbyte ptr [rdi]"
            "fld tbyte ptr [rdi]"
            "fstp st(0)"
            "ret"
        }
        saved_state {
            "lea rdi, [rip + area]"
            "mov [rdi + 32], rax"
            "fxsave [rdi]"
            "mov rcx, [rdi + 32]"
            "ret"
        }
        conditional_move {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "xor ecx, ecx"
            // The condition is false, and memory is read all the same.
            "cmovnz rcx, [rdi]"
            "ret"
        }
        no_access {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "prefetcht0 [rdi]"
            "nop dword ptr [rdi]"
            "lea rcx, [rdi]"
            "ret"
        }
        masked_bytes {
            "lea rdi, [rip + area]"
            "movdqa xmm1, [rip + bytes]"
            "maskmovdqu xmm0, xmm1"
            "movzx eax, byte ptr [rdi]"
            "movzx eax, byte ptr [rdi + 1]"
            "movzx eax, word ptr [rdi + 2]"
            "ret"
        }
        wide if "avx" {
            "lea rdi, [rip + area]"
            "vmovups [rdi], ymm0"
            "vmovups xmm1, [rdi + 8]"
            "ret"
        }
        masked_store if "avx2" {
            "lea rdi, [rip + area]"
            "vmovdqa xmm1, [rip + lanes]"
            "vpmaskmovd [rdi], xmm1, xmm0"
            "mov eax, [rdi]"
            "mov eax, [rdi + 4]"
            "mov rax, [rdi + 8]"
            "ret"
        }
        masked_load if "avx2" {
            "lea rdi, [rip + area]"
            "vmovdqa xmm1, [rip + lanes]"
            "mov [rdi], eax"
            "vpmaskmovd xmm2, xmm1, [rdi]"
            "mov [rdi + 8], eax"
            "vpmaskmovd xmm2, xmm1, [rdi]"
            "ret"
        }
        gather if "avx2" {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "mov [rdi + 8], eax"
            "vmovdqa xmm1, [rip + indices]"
            "vmovdqa xmm2, [rip + lanes]"
            // Elements 0 and 2: at 0 and 8.
            "vpgatherdd xmm0, [rdi + xmm1], xmm2"
            "ret"
        }
        copy_of_copy if "avx512f" {
            "lea rdi, [rip + area]"
            "vmovdqu64 [rdi + 16], zmm0"
            "vmovdqu64 [rdi + 16], zmm0"
            "vmovdqu64 xmm1, [rdi + 40]"
            "ret"
        }
        opmask_store if "avx512f" {
            "lea rdi, [rip + area]"
            "mov eax, 5"
            "kmovw k1, eax"
            "vmovdqu32 [rdi] {{k1}}, zmm0"
            "mov eax, [rdi]"
            "mov eax, [rdi + 4]"
            "mov rax, [rdi + 8]"
            "ret"
        }
        opmask_load if "avx512f" {
            "lea rdi, [rip + area]"
            "mov eax, 3"
            "kmovw k1, eax"
            "mov [rdi], rax"
            "vmovdqu32 zmm0 {{k1}}{{z}}, [rdi]"
            "ret"
        }
        scatter if "avx512f" {
            "lea rdi, [rip + area]"
            "mov eax, 3"
            "kmovw k1, eax"
            "vmovdqa64 zmm1, [rip + indices]"
            "vpscatterdd [rdi + zmm1] {{k1}}, zmm0"
            "mov rax, [rdi]"
            "ret"
        }
        compress if "avx512f" {
            "lea rdi, [rip + area]"
            "mov eax, 0x8001"
            "kmovw k1, eax"
            "vpcompressd [rdi] {{k1}}, zmm0"
            "mov rax, [rdi]"
            "ret"
        }
        kernel_between {
            "lea rdi, [rip + area]"
            "mov [rdi], rdi"
            "mov eax, 110" // getppid
            "syscall"
            "mov rcx, [rdi]"
            "ret"
        }
        kernel_writes {
            "lea rdi, [rip + area]"
            "mov rax, -1"
            "mov [rdi], rax"
            "mov eax, 22" // pipe: two numbers of 4 bytes
            "syscall"
            "mov rcx, [rdi]"
            "ret"
        }
        kernel_fills {
            "lea rdi, [rip + area]"
            "mov [rdi], rdi"
            "mov esi, 4"
            "xor edx, edx"
            "mov eax, 318" // getrandom
            "syscall"
            "mov ecx, [rdi]"
            "mov rcx, [rdi]"
            "ret"
        }
        signal_arrives {
            "lea r8, [rip + area]"
            "mov [r8], r8"
            "mov eax, 39" // getpid
            "syscall"
            "mov edi, eax"
            "mov esi, 10" // SIGUSR1
            "mov eax, 62" // kill
            "syscall"
            "mov rcx, [r8]"
            "ret"
        }
        undecodable {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "mov rcx, [rdi]"
            ".byte 0x06"
            "ret"
        }
        crashes {
            "lea rdi, [rip + area]"
            "mov [rdi], rax"
            "mov rcx, [rdi]"
            "xor edi, edi"
            "mov rcx, [rdi]"
            "ret"
        }
        jumps_away {
            "xor eax, eax"
            "jmp rax"
        }
        exits {
            "mov edi, 7"
            "mov eax, 231" // exit_group
            "syscall"
            "ret"
        }
        forks {
            "mov eax, 57" // fork
            "syscall"
            "test eax, eax"
            "jnz 2f"
            "mov edi, 0"
            "mov eax, 231"
            "syscall"
            "2: ret"
        }
        endless {
            "2: jmp 2b"
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod surroundings {
    //! What some kinds need around them.

    use std::arch::global_asm;

    // Counts in memory of its own and touches nothing else.
    global_asm!(
        ".pushsection .bss.kinds,\"aw\",@nobits",
        "arrivals: .zero 8",
        ".popsection",
        "signal_handler:",
        "inc qword ptr [rip + arrivals]",
        "ret",
    );

    unsafe extern "C" {
        fn signal_handler(signal: i32);
    }

    /// Installs a handler for SIGUSR1 and ignores SIGUSR2.
    pub fn handle_signals() {
        let handler = signal_handler as unsafe extern "C" fn(i32);
        // SAFETY: the handler changes one counter and keeps all registers.
        unsafe {
            libc::signal(libc::SIGUSR1, handler as usize);
            libc::signal(libc::SIGUSR2, libc::SIG_IGN);
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let kinds = kinds::all();
    if wanted == ["--list"] {
        for (name, _, _) in kinds.iter().filter(|(_, _, can_run)| *can_run) {
            println!("{name}");
        }
        return;
    }
    surroundings::handle_signals();
    for name in &wanted {
        match name.as_str() {
            // What follows is called while another thread sleeps.
            "--thread" => {
                std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(60)));
            }
            // What follows is called in a thread.
            "--in-thread" => {
                let rest = wanted.iter().skip_while(|name| *name != "--in-thread").skip(1);
                let names: Vec<String> = rest.cloned().collect();
                std::thread::spawn(move || names.iter().for_each(|name| call(name))).join().ok();
                return;
            }
            // A child process comes and goes.
            "--child" => {
                std::process::Command::new("/bin/true").status().ok();
            }
            name => call(name),
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn call(name: &str) {
    println!("calling {name}");
    for (known, function, can_run) in kinds::all() {
        if known == name && can_run {
            // SAFETY: written above for the C calling convention; they change registers that
            // calls may change, and memory of their own.
            unsafe { function() };
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    eprintln!("only for x86-64 Linux");
}
