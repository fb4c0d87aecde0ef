// Command htpasswd prints the line of an htpasswd file for a user and the
// password on standard input, in bcrypt, which is all that the registry takes.
package main

import (
	"bufio"
	"fmt"
	"os"

	"golang.org/x/crypto/bcrypt"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: htpasswd USER <PASSWORD")
		os.Exit(2)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	hash, err := bcrypt.GenerateFromPassword(in.Bytes(), bcrypt.MinCost)
	if err != nil {
		fmt.Fprintln(os.Stderr, "htpasswd:", err)
		os.Exit(1)
	}
	fmt.Printf("%s:%s\n", os.Args[1], hash)
}
