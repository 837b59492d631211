import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names and contents of the files in a certificate directory. */
type CertificateFiles = ReadonlyMap<string, Buffer>;

const filesByName = new Map<string, CertificateFiles>();

/**
 * Copies the certificates that an earlier server of this process generated to a new directory. To
 * generate them and sync four files takes a third of a server's start.
 * @param name Servers of one name have the same hosts
 */
export function reuseCertificates(directory: string, name: string): void {
  const files = filesByName.get(name);
  if (files === undefined) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [file, content] of files)
    writeFileSync(join(directory, file), content, { mode: 0o600 });
}

/** Remembers the certificates in a directory for later servers of a name. */
export function rememberCertificates(directory: string, name: string): void {
  if (filesByName.has(name)) return;
  const contents = readdirSync(directory).map(
    (file) => [file, readFileSync(join(directory, file))] as const,
  );
  filesByName.set(name, new Map(contents));
}
