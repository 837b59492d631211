import { tooManyRequests } from '../meta/status.ts';
import type { UserInfo } from '../meta/types.ts';

/** What flow control looks at: watches are not counted, `system:masters` never wait. */
export interface FlowRequest {
  readonly info: { readonly verb: string };
  readonly user: UserInfo;
}

/** A place taken by a request; leaving twice is harmless. */
export interface Place {
  leave(): void;
}

export interface FlowControl {
  /** Takes a place, or throws 429 with Retry-After. */
  enter(request: FlowRequest): Place;
  /** Requests in flight, for metrics. */
  readonly inFlight: { readonly readOnly: number; readonly mutating: number };
}

const readVerbs = new Set(['get', 'list', 'head', 'options']);
const free: Place = { leave: () => {} };

/**
 * Bounds requests in flight, reads and writes apart (`--max-requests-inflight`,
 * `--max-mutating-requests-inflight`; 0 is no bound). Watches and members of `system:masters` are
 * not counted, as upstream.
 */
export function limitInFlight(limits: { readOnlyMax: number; mutatingMax: number }): FlowControl {
  const inFlight = { readOnly: 0, mutating: 0 };
  return {
    inFlight,
    enter({ info, user }) {
      if (info.verb === 'watch' || user.groups.includes('system:masters')) return free;
      const lane = readVerbs.has(info.verb) ? 'readOnly' : 'mutating';
      const max = lane === 'readOnly' ? limits.readOnlyMax : limits.mutatingMax;
      if (max > 0 && inFlight[lane] >= max) {
        throw tooManyRequests('Too many requests, please try again later.', 1);
      }
      inFlight[lane] += 1;
      let isTaken = true;
      return {
        leave() {
          if (isTaken) inFlight[lane] -= 1;
          isTaken = false;
        },
      };
    },
  };
}
