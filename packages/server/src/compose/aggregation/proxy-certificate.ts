import type { Clock, Logger } from '@wheelhouse/machinery';
import type { ClientCertificate } from '../../aggregation/transport.ts';
import { followFile, type ReloadOutcome, readKeyPair } from '../files/followed-files.ts';

/**
 * The client certificate for servers and kubelets that requests are passed to; follows its files.
 */
export interface ProxyCertificate {
  current(): ClientCertificate;
  close(): void;
}

/**
 * Reads the certificate and key, and again when they change. While they do not match, because only
 * one of the two was written yet, the old pair stays in use. Throws an error that names the file
 * when they are unusable at the start.
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
