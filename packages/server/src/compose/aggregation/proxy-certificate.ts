import type { Clock, Logger } from '@wheelhouse/machinery';
import type { ClientCertificate } from '../../aggregation/transport.ts';
import { followFile, type ReloadOutcome, readKeyPair } from '../files/followed-files.ts';

/** Who this server is to the servers and kubelets it passes requests on to; follows its files. */
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
  let pair = readKeyPair(files);
  const load = () => {
    pair = readKeyPair(files);
    around.changed();
  };
  const observe = (outcome: ReloadOutcome) => {
    if (outcome.status === 'success') return;
    logger.warn('a client certificate was not read again', {
      file: files.certFile,
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
