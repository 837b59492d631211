import { readFileSync } from 'node:fs';
import { errorText, systemErrorCode } from '@wheelhouse/machinery';
import { KubeconfigError } from '../kubeconfig/kubeconfig.ts';

/**
 * A token from a file, read again for every request. While the file is unreadable or empty, which
 * happens when it is being renewed, the last token stays in use. Throws KubeconfigError if the
 * first read finds no token.
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
      // The file may be missing while it is replaced; the next request reads it again.
    }
    return last;
  };
}
