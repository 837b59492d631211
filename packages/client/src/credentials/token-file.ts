import { readFileSync } from 'node:fs';
import { KubeconfigError, readProblem } from '../kubeconfig/kubeconfig.ts';

/**
 * Returns a function that reads a token from a file. While the file is missing or empty, for
 * example during its renewal, it returns the last token.
 * @param options.fallback token until the file has one; without it, throws KubeconfigError for an
 * unreadable or empty file, since requests without a token would be anonymous
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
    if (last === undefined) throw new KubeconfigError(readProblem(options.file, error));
  }
  if (last === undefined) {
    throw new KubeconfigError(`read empty token from file ${JSON.stringify(options.file)}`);
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
