import { isLongRunning } from '@wheelhouse/machinery';
import { type FlowControl, isReadOnly, Overloaded, uncountedSeat } from './contract.ts';

/**
 * Bounds requests in flight, reads and writes apart (`--max-requests-inflight`,
 * `--max-mutating-requests-inflight`; 0 and infinity are no bound). What lasts long is not counted,
 * and members of `system:masters` come in where there is no place left, as upstream.
 */
export function limitInFlight(limits: { readOnlyMax: number; mutatingMax: number }): FlowControl {
  const inFlight = { readOnly: 0, mutating: 0 };
  return {
    inFlight,
    inQueue: { readOnly: 0, mutating: 0 },
    enter({ info, user }) {
      if (isLongRunning(info)) return uncountedSeat;
      const lane = isReadOnly(info.verb) ? 'readOnly' : 'mutating';
      const max = lane === 'readOnly' ? limits.readOnlyMax : limits.mutatingMax;
      if (max > 0 && inFlight[lane] >= max) {
        if (user.groups.includes('system:masters')) return uncountedSeat;
        throw new Overloaded(1);
      }
      inFlight[lane] += 1;
      let isTaken = true;
      return {
        flowClass: undefined,
        leave() {
          if (isTaken) inFlight[lane] -= 1;
          isTaken = false;
        },
      };
    },
  };
}
