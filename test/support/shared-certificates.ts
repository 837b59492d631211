import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names and contents of the files in a certificate directory. */
type CertificateFiles = ReadonlyMap<string, Buffer>;

const filesByName = new Map<string, CertificateFiles>();

/**
 * Copies the certificates that an earlier server of this process generated to a new directory.
 * Generating them and syncing four files takes a third of a server's start.
 * @param name servers with the same name have the same hosts
 */
export function reuseCertificates(directory: string, name: string): void {
  const files = filesByName.get(name);
  if (files === undefined) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [file, content] of files)
    writeFileSync(join(directory, file), content, { mode: 0o600 });
}

/** Stores the certificates in a directory for later servers with a name. */
export function rememberCertificates(directory: string, name: string): void {
  if (filesByName.has(name)) return;
  const contents = readdirSync(directory).map(
    (file) => [file, readFileSync(join(directory, file))] as const,
  );
  filesByName.set(name, new Map(contents));
}
