import { StatusError, serviceUnavailable } from '../meta/status.ts';
import type { StoreError } from '../storage/contract.ts';

/**
 * The answer to a request whose store does not serve, whether it read or wrote. What a service
 * behind the store says is passed on as upstream does: 500, in the service's own words.
 */
export function unservedBy(error: StoreError): StatusError {
  switch (error.code) {
    case 'refused':
      return new StatusError({ code: 500, reason: '', message: error.message, cause: error });
    case 'timed-out':
      return new StatusError({
        code: 504,
        reason: 'Timeout',
        message:
          'Timeout: request did not complete within requested timeout - context deadline exceeded',
        cause: error,
      });
    default:
      return serviceUnavailable('the store is unavailable');
  }
}
