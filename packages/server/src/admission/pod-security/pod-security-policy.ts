import { appendAll, type Dialect, type FieldError, invalid } from '@wheelhouse/machinery';

/** The levels, from the least to the most restrictive. */
export type Level = 'privileged' | 'baseline' | 'restricted';

const levels: readonly Level[] = ['privileged', 'baseline', 'restricted'];

/** A standard of a release: `restricted:v1.25`, or the latest. */
export interface Standard {
  readonly level: Level;
  /** Minor release; undefined means the latest. */
  readonly minor: number | undefined;
}

/** The standards that a namespace enforces, warns about, and audits. */
export interface Policy {
  readonly enforce: Standard;
  readonly warn: Standard;
  readonly audit: Standard;
}

/** Compares levels; negative if the first is less restrictive. */
export function compareLevels(left: Level, right: Level): number {
  return levels.indexOf(left) - levels.indexOf(right);
}

/** `restricted:latest`. */
export function standardText({ level, minor }: Standard): string {
  return `${level}:${minor === undefined ? 'latest' : `v1.${minor}`}`;
}

const anything: Standard = { level: 'privileged', minor: undefined };

/** The policy without labels and configuration. */
export const openPolicy: Policy = { enforce: anything, warn: anything, audit: anything };

/** Validates the name of a level. */
export function levelProblem(field: string, level: string): FieldError[] {
  if ((levels as readonly string[]).includes(level)) return [];
  return [invalid(field, level, `must be one of ${levels.join(', ')}`)];
}

/** Validates the name of a version. */
export function versionProblem(field: string, version: string): FieldError[] {
  return minorOf(version) === 'unreadable'
    ? [invalid(field, version, 'must be "latest" or "v1.x"')]
    : [];
}

/**
 * The policy in a namespace's labels, with `defaults` for missing ones, and errors in them. An
 * invalid label means the most restrictive standard for enforcement, and the least restrictive one
 * for warnings and audit.
 */
export function policyOf(
  labels: Readonly<Record<string, string>>,
  { dialect, defaults }: { readonly dialect: Dialect; readonly defaults: Policy },
): { readonly policy: Policy; readonly errors: readonly FieldError[] } {
  const errors: FieldError[] = [];
  const read = (mode: 'enforce' | 'warn' | 'audit') => {
    const levelLabel = dialect.label(mode, 'pod-security');
    const versionLabel = dialect.label(`${mode}-version`, 'pod-security');
    const own = (label: string) => (Object.hasOwn(labels, label) ? labels[label] : undefined);
    const [levelText, versionText] = [own(levelLabel), own(versionLabel)];
    const level = levels.find((candidate) => candidate === levelText);
    const minor = versionText === undefined ? undefined : minorOf(versionText);
    if (levelText !== undefined) {
      appendAll(errors, levelProblem(`metadata.labels[${levelLabel}]`, levelText));
    }
    if (versionText !== undefined) {
      appendAll(errors, versionProblem(`metadata.labels[${versionLabel}]`, versionText));
    }
    const unread: Level = mode === 'enforce' ? 'restricted' : 'privileged';
    const otherwise = defaults[mode];
    const standard: Standard = {
      level: level ?? (levelText === undefined ? otherwise.level : unread),
      minor:
        versionText === undefined ? otherwise.minor : minor === 'unreadable' ? undefined : minor,
    };
    return { levelText, level, versionText, standard };
  };
  const [enforce, audit, warn] = [read('enforce'), read('audit'), read('warn')];
  const { standard: enforced } = enforce;
  const { standard: warnStandard } = warn;
  const followsEnforced =
    warn.levelText === undefined &&
    enforce.level !== undefined &&
    compareLevels(enforce.level, warnStandard.level) > 0;
  const warned = followsEnforced
    ? {
        level: enforced.level,
        minor: warn.versionText === undefined ? enforced.minor : warnStandard.minor,
      }
    : warnStandard;
  return { policy: { enforce: enforced, warn: warned, audit: audit.standard }, errors };
}

/** The minor release of a version; undefined for the latest. */
export function minorOf(text: string): number | undefined | 'unreadable' {
  if (text === 'latest') return undefined;
  const digits = /^v1\.(0|[1-9]\d{0,5})$/.exec(text)?.[1];
  return digits === undefined ? 'unreadable' : Number(digits);
}
