/** A version of a program, as semver.org defines it; what follows `+` says nothing of its order. */
export interface SemanticVersion {
  readonly core: readonly [major: number, minor: number, patch: number];
  /** The identifiers after `-`; none in a release. */
  readonly preRelease: readonly string[];
}

const number = '(0|[1-9]\\d{0,9})';
const words = '[0-9A-Za-z.-]{1,256}';
const pattern = new RegExp(`^${number}\\.${number}\\.${number}(?:-(${words}))?(?:\\+${words})?$`);

/** Reads `1.32.0`, with a pre-release and build or without; undefined for what is no version. */
export function parseSemanticVersion(text: string): SemanticVersion | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, major, minor, patch, preRelease] = match;
  return {
    core: [Number(major), Number(minor), Number(patch)],
    preRelease: preRelease?.split('.') ?? [],
  };
}

/**
 * Compares two versions by precedence.
 * @returns a negative number when `one` comes first, a positive one when `other` does, or 0
 */
export function compareSemanticVersions(one: SemanticVersion, other: SemanticVersion): number {
  for (const index of [0, 1, 2] as const) {
    const difference = one.core[index] - other.core[index];
    if (difference !== 0) return difference;
  }
  const [first, second] = [one.preRelease, other.preRelease];
  // A pre-release comes before its release.
  if (first.length === 0 || second.length === 0) return second.length - first.length;
  const shared = Math.min(first.length, second.length);
  for (let index = 0; index < shared; index++) {
    const difference = compareIdentifiers(first[index] ?? '', second[index] ?? '');
    if (difference !== 0) return difference;
  }
  return first.length - second.length;
}

/** Numbers come before words and compare by value; words compare by their bytes. */
function compareIdentifiers(one: string, other: string): number {
  const [isNumber, otherIsNumber] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (isNumber !== otherIsNumber) return isNumber ? -1 : 1;
  if (isNumber && one.length !== other.length) return one.length - other.length;
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
