// The clients of Go on one server; ONLY is a pattern of `client.case`.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

func main() {
	printed := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr
	only := regexp.MustCompile(os.Getenv("ONLY"))
	for _, client := range []Client{
		pgxClient(), pqClient(), sqlClient(), gormClient(), gooseClient(), migrateClient(), bunClient(),
	} {
		client.Run(only, printed)
	}
}
