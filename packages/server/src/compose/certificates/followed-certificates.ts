import type { Clock, Logger } from '@wheelhouse/machinery';
import { followFile, type ReloadedFile } from './reloaded-file.ts';

/**
 * Follows a file of certificates or of a key. What `load` throws leaves in use what was loaded
 * before, is logged, and is tried again: another file may have to change first. `text` is what is
 * loaded already.
 */
export function followCertificates(options: {
  readonly file: string;
  readonly text: string;
  readonly load: (text: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}): ReloadedFile {
  const { file, text, load, clock, logger } = options;
  return followFile({
    file,
    text,
    clock,
    load,
    isTemporary: () => true,
    observe: (outcome) => {
      if (outcome.status === 'success') logger.info('certificates were read again', { file });
      else {
        const error = String(outcome.error);
        logger.warn('certificates were not read again', { file, error });
      }
    },
  });
}
