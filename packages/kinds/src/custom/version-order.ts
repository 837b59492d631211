/**
 * Orders API versions, the preferred first: GA before beta before alpha, higher numbers first within
 * each, and names of another shape last in alphabetical order (`v2`, `v1`, `v1beta2`, `foo1`).
 */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [parseVersion(one), parseVersion(other)];
  if (a === undefined || b === undefined) {
    if (a !== undefined) return -1;
    if (b !== undefined) return 1;
    return one < other ? -1 : Number(one > other);
  }
  return b.stage - a.stage || b.major - a.major || b.minor - a.minor;
}

function parseVersion(
  version: string,
): { major: number; stage: number; minor: number } | undefined {
  const match = /^v([1-9][0-9]{0,8})(?:(alpha|beta)([1-9][0-9]{0,8}))?$/.exec(version);
  if (match === null) return undefined;
  const stage = match[2] === undefined ? 3 : match[2] === 'beta' ? 2 : 1;
  return { major: Number(match[1]), stage, minor: Number(match[3] ?? 0) };
}
