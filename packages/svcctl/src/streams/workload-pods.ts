import type { JsonObject } from '@wheelhouse/machinery';
import { listAt, textAt } from '../objects.ts';
import { itemsWithType, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { watch } from '../watch.ts';

/** What a Pod is for: to print its log, or to connect to it. */
type Purpose = 'logs' | 'stream';

/**
 * Lists the Pods that a label selector matches, in the order in which kubectl prefers them. Waits
 * for one if there are none. Rejects with CliError after `timeoutMs`.
 */
export async function waitForPods(
  session: Session,
  labelSelector: string,
  { purpose, timeoutMs }: { readonly purpose: Purpose; readonly timeoutMs: number },
): Promise<readonly [JsonObject, ...JsonObject[]]> {
  const { client, namespace } = session;
  const resource = await session.resourceOfKind('Pod');
  const path = targetPath({ resource, namespace, name: undefined });
  return session.waitFor(timeoutMs, async (signal) => {
    for (;;) {
      const list = await client.get(path, { labelSelector });
      const [first, ...others] = byPreference(itemsWithType(list), purpose);
      if (first !== undefined) return [first, ...others];
      const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
      const query = { labelSelector, resourceVersion };
      for await (const { type, object } of watch(session, { path, query, signal })) {
        if (type !== 'ADDED' && type !== 'MODIFIED') break;
        return [object];
      }
    }
  });
}

function byPreference(pods: readonly JsonObject[], purpose: Purpose): readonly JsonObject[] {
  const ranked = pods.map((pod) => ({ pod, rank: rankOf(pod, purpose) }));
  ranked.sort((left, right) => {
    const at = left.rank.findIndex((value, index) => value !== right.rank[index]);
    return at < 0 ? 0 : (left.rank[at] as number) - (right.rank[at] as number);
  });
  return ranked.map(({ pod }) => pod);
}

/** Ranks of phases; for a log, a Pod that has ended is as good as one that runs. */
const phaseRanks: Readonly<Record<Purpose, Readonly<Record<string, number>>>> = {
  logs: { Running: 0, Succeeded: 0, Failed: 0, Unknown: 1, Pending: 2 },
  stream: { Running: 0, Unknown: 1, Pending: 2, Succeeded: 2, Failed: 2 },
};

/** A key of finite numbers, which are compared in order; smaller ones are preferred. */
function rankOf(pod: JsonObject, purpose: Purpose): readonly number[] {
  const ready = listAt(pod, 'status', 'conditions').find(
    (condition) => condition['type'] === 'Ready' && condition['status'] === 'True',
  );
  const deletion = textAt(pod, 'metadata', 'deletionTimestamp');
  // kubectl prefers the log of a Pod that restarts often, and a connection to one that does not.
  const sign = purpose === 'logs' ? -1 : 1;
  return [
    textAt(pod, 'spec', 'nodeName') === '' ? 1 : 0,
    phaseRanks[purpose][textAt(pod, 'status', 'phase')] ?? 2,
    ready === undefined ? 1 : 0,
    ...(purpose === 'logs' || deletion === '' ? [0, 0] : [1, -timeOf(deletion)]),
    ready === undefined ? 0 : timeOf(textAt(ready, 'lastTransitionTime')),
    ...restartsOf(pod).map((count) => sign * count),
    timeOf(textAt(pod, 'metadata', 'creationTimestamp')),
  ];
}

/** A time in milliseconds; an absent one is the latest. */
const timeOf = (text: string): number => (text === '' ? Number.MAX_VALUE : Date.parse(text));

/** The largest numbers of restarts of a regular container and of a sidecar. */
function restartsOf(pod: JsonObject): readonly [regular: number, sidecar: number] {
  const largest = (statuses: readonly JsonObject[]) =>
    Math.max(0, ...statuses.map((status) => Number(status['restartCount'] ?? 0)));
  const sidecars = new Set(
    listAt(pod, 'spec', 'initContainers')
      .filter((container) => container['restartPolicy'] === 'Always')
      .map((container) => container['name']),
  );
  const initStatuses = listAt(pod, 'status', 'initContainerStatuses');
  return [
    largest(listAt(pod, 'status', 'containerStatuses')),
    largest(initStatuses.filter((status) => sidecars.has(status['name']))),
  ];
}
