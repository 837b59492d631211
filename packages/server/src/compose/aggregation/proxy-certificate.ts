import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Clock, Logger } from '@wheelhouse/machinery';
import type { ClientCertificate } from '../../aggregation/transport.ts';
import {
  followFile,
  type ReloadOutcome,
  readConfigurationFile,
} from '../certificates/reloaded-file.ts';

/** Who this server is to the servers it passes requests on to; follows its files. */
export interface ProxyCertificate {
  current(): ClientCertificate;
  close(): void;
}

/**
 * Reads the certificate and key, and reads them again when they change: what does not fit together
 * then, since only one of the two has been written yet, leaves the old pair in use. Throws, naming
 * the file, when they cannot be used at the start.
 */
export function openProxyCertificate(
  files: { readonly certFile: string; readonly keyFile: string },
  around: { readonly clock: Clock; readonly logger: Logger; changed(): void },
): ProxyCertificate {
  const { clock, logger } = around;
  let pair = readPair(files);
  const load = () => {
    pair = readPair(files);
    around.changed();
  };
  const observe = (outcome: ReloadOutcome) => {
    if (outcome.status === 'success') return;
    logger.warn('the proxy client certificate was not read again', {
      error: String(outcome.error),
    });
  };
  const isTemporary = () => true;
  const follow = (file: string, text: string) =>
    followFile({ file, text, clock, load, observe, isTemporary });
  const followed = [
    follow(files.certFile, pair.certificatePem),
    follow(files.keyFile, pair.keyPem),
  ];
  return {
    current: () => pair,
    close() {
      for (const one of followed) one.stop();
    },
  };
}

function readPair(files: {
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
