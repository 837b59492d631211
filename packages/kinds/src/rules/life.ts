import { apiVersionOf, type Dialect } from '@wheelhouse/machinery';
import { structFacts } from '../facts.ts';
import type { VersionDef } from '../resource-def.ts';

/** Minor version of the release that is emulated by default (1.32). */
export const currentMinor = 32;

/** The releases that serve a version of a kind, as minor versions. */
export interface Life {
  readonly introduced: number;
  /** Absent, like `removed`, for versions that are never removed. */
  readonly deprecated?: number;
  readonly removed?: number;
  /** The release that stops serving it, if that is earlier than `removed`. */
  readonly dropped?: number;
  readonly replacement?: {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  };
}

const minorOf = (release: string): number => Number(release.split('.')[1]);

/** The name of a release by its minor version: `1.22`. */
export const releaseName = (minor: number): string => `1.${minor}`;

const isStable = (typeName: string): boolean => /\.v\d+\.\w+$/.test(typeName);

/**
 * The life of a version by its type's name (`batch.v1beta1.CronJob`); undefined for versions that
 * every release serves. An alpha or beta version is deprecated three releases after its
 * introduction and removed three later, unless its type states otherwise.
 */
export function lifeOf(typeName: string): Life | undefined {
  const facts = structFacts(typeName);
  if (facts?.introduced === undefined) return undefined;
  const introduced = minorOf(facts.introduced);
  if (isStable(typeName)) return { introduced };
  const deprecated = facts.deprecated === undefined ? introduced + 3 : minorOf(facts.deprecated);
  const removed = facts.removed === undefined ? deprecated + 3 : minorOf(facts.removed);
  const { replacement } = facts;
  return { introduced, deprecated, removed, ...(replacement === undefined ? {} : { replacement }) };
}

/** When versions disappear: in the release that removes them, or in the next one. */
export type Removal = 'at once' | 'one release later';

/** Whether a release has a version. */
export function livesIn(
  life: Life | undefined,
  { minor, removal }: { readonly minor: number; readonly removal?: Removal },
): boolean {
  if (life === undefined) return true;
  const { introduced, dropped, removed = Number.POSITIVE_INFINITY } = life;
  const end = dropped ?? (removal === 'one release later' ? removed + 1 : removed);
  return introduced <= minor && minor < end;
}

/** kube-apiserver's warning about a deprecated version (VER-3); undefined for a current one. */
function deprecationWarning(options: {
  readonly dialect: Dialect;
  readonly apiVersion: string;
  readonly kind: string;
  readonly life: Life | undefined;
  readonly minor: number;
}): string | undefined {
  const { dialect, life, minor } = options;
  const { deprecated, removed, replacement } = life ?? {};
  if (deprecated === undefined || removed === undefined || deprecated > minor) return undefined;
  const end = `deprecated in v${releaseName(deprecated)}+, unavailable in v${releaseName(removed)}+`;
  const text = `${options.apiVersion} ${options.kind} is ${end}`;
  if (replacement === undefined) return text;
  const { group, version, kind } = replacement;
  return `${text}; use ${apiVersionOf({ group: dialect.group(group), version })} ${kind}`;
}

/** The members of a version that its life determines. */
export function lifeMembers(
  life: Life | undefined,
  at: Omit<Parameters<typeof deprecationWarning>[0], 'life'> & { readonly removal?: Removal },
): Pick<VersionDef, 'served' | 'introduced' | 'removedRelease' | 'deprecationWarning'> {
  const warning = deprecationWarning({ ...at, life });
  const { introduced, removed } = life ?? {};
  return {
    served: livesIn(life, at),
    ...(introduced === undefined ? {} : { introduced: releaseName(introduced) }),
    ...(removed === undefined ? {} : { removedRelease: releaseName(removed) }),
    ...(warning === undefined ? {} : { deprecationWarning: warning }),
  };
}
