import { readFileSync } from 'node:fs';
import { errorText, systemErrorCode } from '@wheelhouse/machinery';
import { KubeconfigError } from '../kubeconfig/kubeconfig.ts';

/**
 * Returns a function that reads a token from a file. While the file is missing or empty, for
 * example during its renewal, it returns the last token.
 * @param options.fallback token until the file has one; without it, throws KubeconfigError for an
 * unreadable file
 */
export function tokenFileSource(options: {
  readonly file: string;
  readonly fallback?: string | undefined;
}): () => string | undefined {
  let last = options.fallback;
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
      // The file may be missing while it is being replaced; the next request reads it again.
    }
    return last;
  };
}
