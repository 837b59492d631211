import type { Exchange, MaybePromise, StatusError, UserInfo } from '@wheelhouse/machinery';
import type { RequestInfo } from '../request/request-info.ts';

/** A request whose sender is known, behind impersonation. */
export interface TappedRequest {
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly user: UserInfo;
}

/** What becomes of a watch. */
export interface WatchFate {
  /** Sent as an ERROR event in place of everything else. */
  readonly error?: StatusError | undefined;
  /** Receives the function that cuts the watch off; its reader sees an incomplete body. */
  readonly opened?: ((cut: () => void) => void) | undefined;
  /** The watch has ended. */
  readonly closed?: (() => void) | undefined;
}

/**
 * Sees every request, and may get in its way (PLANE-5, PLANE-6). A program that runs the server
 * inside itself gives one; without it a request pays one comparison.
 */
export interface RequestTap {
  /** Called ahead of flow control. Refuses the request by throwing a StatusError. */
  admit(request: TappedRequest): MaybePromise<void>;
  /** Learns the name of a created object, which its path does not tell. */
  named(exchange: Exchange, name: string): void;
  /** Called when a watch begins. */
  watch(exchange: Exchange): WatchFate | undefined;
  /** Called once for each request, when it has been answered; a watch goes on then. */
  over(exchange: Exchange, info: RequestInfo | undefined): void;
}
