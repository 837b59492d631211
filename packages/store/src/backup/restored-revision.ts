import { type Revision, StoreError } from '../contract.ts';
import { revisionMax } from './format.ts';

/** More than anybody wrote behind a backup's back while clocks disagreed. */
const leap = 1_000_000_000;
/** No server writes as often as that, 100,000 times a second. */
const writesPerMsMax = 100;

/**
 * The revision a restored store begins with: past every one that the server may have given out after
 * the backup was made, however often the same backup is restored. A revision that a client has kept
 * then lies in the forgotten past and is Expired; it never comes to mean something else. (It is
 * what etcd's own restore does with `--bump-revision` and `--mark-compacted`.)
 */
export function restoredRevision(backup: {
  readonly revision: Revision;
  /** Wall times, milliseconds since the epoch. */
  readonly createdMs: number;
  readonly nowMs: number;
}): Revision {
  const { revision, createdMs, nowMs } = backup;
  const ageMs = Math.max(0, Math.ceil(nowMs - createdMs));
  const restored = revision + leap + ageMs * writesPerMsMax;
  if (restored <= revisionMax / 2) return restored;
  const message = `the backup is of revision ${revision} and ${ageMs} ms old: too far to go on`;
  throw new StoreError({ code: 'refused', message });
}
