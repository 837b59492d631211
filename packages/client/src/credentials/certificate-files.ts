import { readFileSync, type Stats, statSync } from 'node:fs';
import type { Credential, CredentialSource } from '../kubeconfig/client-config.ts';

/** The files of a client certificate and its key. */
interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/**
 * The source of a certificate and its key in files, which are read again once they have changed.
 * While a file is missing or does not match the other, for example during their renewal, the last
 * pair remains.
 * @param first the pair that the files contain now
 */
export function certificateFileSource(
  files: CertificateFiles,
  first: Credential,
): CredentialSource {
  let last = first;
  let lastState = stateOf(files);
  const read = async (): Promise<Credential> => {
    const state = stateOf(files);
    if (state === undefined || state === lastState) return last;
    try {
      const { checkPair } = await import('./exec-credential.ts');
      const certificatePem = readFileSync(files.certificate, 'utf8');
      const keyPem = readFileSync(files.key, 'utf8');
      checkPair(certificatePem, keyPem);
      last = { certificatePem, keyPem };
      lastState = state;
    } catch {
      // The next request reads the files again.
    }
    return last;
  };
  return {
    current: read,
    renew: read,
    // A client notices the change with the next request.
    onCertificateChange: () => () => {},
  };
}

/** A text that differs once a file has changed; undefined while one is missing. */
function stateOf({ certificate, key }: CertificateFiles): string | undefined {
  try {
    return [certificate, key].map((file) => versionOf(statSync(file))).join(' ');
  } catch {
    return undefined;
  }
}

const versionOf = ({ ino, size, mtimeMs }: Stats): string => `${ino}:${size}:${mtimeMs}`;
