import { parseFieldSelector } from '@wheelhouse/machinery';
import type { FlowInfo } from './contract.ts';

/** Watches of one resource, by what they are of. */
interface Counts {
  ofAll: number;
  /** By `namespace`, and `namespace/name`. */
  readonly of: Map<string, number>;
}

/** Counts the watches that a write's events go to, to know what the write costs (OPS-3). */
export class WatchCounts {
  /** By resource, then group. */
  readonly #resources = new Map<string, Map<string, Counts>>();
  #total = 0;

  /** A watch has begun; what it gives is called at its end. */
  began(info: FlowInfo): () => void {
    if (info.resource === 'pods' && isOfOneNode(info.query)) return () => {};
    const counts = this.#countsOf(info);
    const key = keyOf(info);
    const count = (by: 1 | -1) => {
      this.#total += by;
      if (key === '') {
        counts.ofAll += by;
        return;
      }
      const now = (counts.of.get(key) ?? 0) + by;
      if (now === 0) counts.of.delete(key);
      else counts.of.set(key, now);
    };
    count(1);
    let isOver = false;
    return () => {
      if (!isOver) count(-1);
      isOver = true;
    };
  }

  /** How many watches may see what this request writes. */
  interestedIn({ group, resource, namespace, name }: FlowInfo): number {
    if (this.#total === 0) return 0;
    const counts = this.#resources.get(resource)?.get(group);
    if (counts === undefined) return 0;
    let found = counts.ofAll;
    if (counts.of.size === 0) return found;
    if (namespace !== '') found += counts.of.get(namespace) ?? 0;
    if (name !== '') found += counts.of.get(`${namespace}/${name}`) ?? 0;
    return found;
  }

  #countsOf({ group, resource }: FlowInfo): Counts {
    let groups = this.#resources.get(resource);
    if (groups === undefined) {
      groups = new Map();
      this.#resources.set(resource, groups);
    }
    let counts = groups.get(group);
    if (counts === undefined) {
      counts = { ofAll: 0, of: new Map() };
      groups.set(group, counts);
    }
    return counts;
  }
}

function keyOf({ namespace, name }: FlowInfo): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}

/** Such a watch is told of few pods: those of the one node it names. */
function isOfOneNode(query: URLSearchParams): boolean {
  const selector = query.get('fieldSelector');
  if (selector === null || !selector.includes('spec.nodeName')) return false;
  try {
    return parseFieldSelector(selector).some(
      ({ label, operator, value }) => label === 'spec.nodeName' && operator === '=' && value !== '',
    );
  } catch {
    return false;
  }
}
