package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// pauseCode is the whole pause program by architecture, position independent:
// it ignores SIGCHLD with SA_NOCLDWAIT, so that the kernel reaps the zombies of
// a shared process namespace by itself, and then sleeps for good.
var pauseCode = map[string][]byte{
	"amd64": {
		0xb8, 0x0d, 0x00, 0x00, 0x00, //             mov eax, 13 (rt_sigaction)
		0xbf, 0x11, 0x00, 0x00, 0x00, //             mov edi, 17 (SIGCHLD)
		0x48, 0x8d, 0x35, 0x13, 0x00, 0x00, 0x00, // lea rsi, [rip+19] (sigaction)
		0x31, 0xd2, //                               xor edx, edx
		0x41, 0xba, 0x08, 0x00, 0x00, 0x00, //       mov r10d, 8
		0x0f, 0x05, //                               syscall
		0xb8, 0x22, 0x00, 0x00, 0x00, //       loop: mov eax, 34 (pause)
		0x0f, 0x05, //                               syscall
		0xeb, 0xf7, //                               jmp loop
	},
	"arm64": {
		0xc8, 0x10, 0x80, 0xd2, //       mov x8, 134 (rt_sigaction)
		0x20, 0x02, 0x80, 0xd2, //       mov x0, 17 (SIGCHLD)
		0x81, 0x01, 0x00, 0x10, //       adr x1, pc+48 (sigaction)
		0x02, 0x00, 0x80, 0xd2, //       mov x2, 0
		0x03, 0x01, 0x80, 0xd2, //       mov x3, 8
		0x01, 0x00, 0x00, 0xd4, //       svc 0
		0x00, 0x00, 0x80, 0xd2, // loop: mov x0, 0
		0x01, 0x00, 0x80, 0xd2, //       mov x1, 0
		0x02, 0x00, 0x80, 0xd2, //       mov x2, 0
		0x03, 0x00, 0x80, 0xd2, //       mov x3, 0
		0x28, 0x09, 0x80, 0xd2, //       mov x8, 73 (ppoll)
		0x01, 0x00, 0x00, 0xd4, //       svc 0
		0xfa, 0xff, 0xff, 0x17, //       b loop
		0x1f, 0x20, 0x03, 0xd5, //       nop (aligns what follows)
	},
}

// sigaction is the kernel's struct: SIG_IGN, SA_NOCLDWAIT, no restorer, no mask.
var sigaction = [4]uint64{1, 2, 0, 0}

const pauseBase = 0x400000

// pauseELF returns a static executable of a few hundred bytes: one process, one
// thread and one page, as little as a sandbox can cost.
func pauseELF(arch string) ([]byte, error) {
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[arch]
	code, ok := pauseCode[arch]
	if !ok {
		return nil, fmt.Errorf("no pause program for %s", arch)
	}
	const headers = 64 + 56
	size := uint64(headers + len(code) + 32)
	var b bytes.Buffer
	for _, field := range []any{
		[16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, // 64 bit, little endian
		uint16(2), machine, uint32(1),          // an executable
		uint64(pauseBase + headers), uint64(64), uint64(0), // entry, program headers, sections
		uint32(0), uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), // load, readable and executable, from the file's start
		uint64(pauseBase), uint64(pauseBase), size, size, uint64(0x10000),
		code, sigaction,
	} {
		if err := binary.Write(&b, binary.LittleEndian, field); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
