import type { Exchange } from '../base/exchange.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { UserInfo } from '../meta/types.ts';

/**
 * One way to tell who asks. `undefined`: no credential of this authenticator's kind; a thrown or
 * rejected error: there is one and it is bad (AUTHN-1: then the answer is 401, never anonymous,
 * unless another authenticator accepts it).
 */
export interface Authenticator {
  readonly name: string;
  authenticate(exchange: Exchange): MaybePromise<UserInfo | undefined>;
}
