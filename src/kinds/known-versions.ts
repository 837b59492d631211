import type { Dialect } from '../dialect.ts';
import { groupStems, versionFacts } from './facts.ts';

/** Whether the release has a group of this name, served here or not. */
export function isKnownGroup(dialect: Dialect, group: string): boolean {
  return factsOf(dialect, group) !== undefined;
}

/** Whether the release has a group version, served, removed or not made here. */
export function isKnownGroupVersion(
  dialect: Dialect,
  { group, version }: { readonly group: string; readonly version: string },
): boolean {
  const facts = factsOf(dialect, group);
  return facts !== undefined && versionFacts(`${facts}.${version}`) !== undefined;
}

/** The table of facts of a group; `meta` and the groups of webhooks are no groups of the API. */
function factsOf(dialect: Dialect, group: string): string | undefined {
  const found = Object.entries(groupStems).find(([, stem]) => dialect.group(stem) === group);
  const inside = ['admission', 'apidiscovery', 'imagepolicy', 'meta'];
  return found === undefined || inside.includes(found[0]) ? undefined : found[0];
}
