import { readFileSync } from 'node:fs';
import { errorText, systemErrorCode } from '@wheelhouse/machinery';
import { KubeconfigError } from '../kubeconfig/kubeconfig.ts';

/**
 * A token that a file holds and may change, read anew for every request. When it cannot be read or
 * is empty the last token stays in use, as whoever renews the file may be in the middle of it.
 * Throws KubeconfigError when there is no token at all to begin with.
 */
export function tokenFileSource(options: {
  readonly file: string;
  readonly otherwise?: string | undefined;
}): () => string | undefined {
  let last = options.otherwise;
  const read = (): void => {
    const token = readFileSync(options.file, 'utf8').trim();
    if (token !== '') last = token;
  };
  try {
    read();
  } catch (error) {
    const code = systemErrorCode(error);
    const message = errorText(error);
    const why = code === 'ENOENT' ? 'no such file or directory' : message;
    if (last === undefined) throw new KubeconfigError(`open ${options.file}: ${why}`);
  }
  return () => {
    try {
      read();
    } catch {
      // Absent while it is being replaced; the next request looks again.
    }
    return last;
  };
}
