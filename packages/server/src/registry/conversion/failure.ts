import { StatusError } from '@wheelhouse/machinery';

/** An object could not be had in another version; the message is told to the client (CRD-4). */
export class ConversionFailure extends StatusError {
  constructor(message: string, cause?: unknown) {
    // Upstream's errors of conversion have no reason.
    super({ code: 500, reason: '', message, cause });
    this.name = 'ConversionFailure';
  }
}
