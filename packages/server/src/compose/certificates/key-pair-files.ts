import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { ClientCertificate } from '../../aggregation/transport.ts';
import { readConfigurationFile } from './reloaded-file.ts';

/** Reads a certificate and its key. Throws, naming the file, when they are no pair. */
export function readKeyPair(files: {
  readonly certFile: string;
  readonly keyFile: string;
}): ClientCertificate {
  const certificatePem = readConfigurationFile(files.certFile);
  const keyPem = readConfigurationFile(files.keyFile);
  const read = <T>(file: string, what: string, make: () => T): T => {
    try {
      return make();
    } catch (error) {
      throw new Error(`${file} holds no ${what}`, { cause: error });
    }
  };
  const certificate = read(
    files.certFile,
    'certificate',
    () => new X509Certificate(certificatePem),
  );
  const key = read(files.keyFile, 'private key', () => createPrivateKey(keyPem));
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(`${files.keyFile} is not the key of the certificate in ${files.certFile}`);
  }
  return { certificatePem, keyPem };
}
