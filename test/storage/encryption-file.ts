import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes an EncryptionConfiguration, which a server may follow; returns its path. */
export function writeEncryption(directory: string, resources: object, name: string): string {
  const path = join(directory, name);
  const head = { apiVersion: 'apiserver.config.svc.io/v1', kind: 'EncryptionConfiguration' };
  // A server that follows the file must never see an incomplete one.
  writeFileSync(`${path}.new`, JSON.stringify({ ...head, resources }));
  renameSync(`${path}.new`, path);
  return path;
}
