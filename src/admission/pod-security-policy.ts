import type { Dialect } from '../dialect.ts';
import { type FieldError, invalid } from '../meta/field-error.ts';

/** How much a pod may do, from everything to little. */
export type Level = 'privileged' | 'baseline' | 'restricted';

const levels: readonly Level[] = ['privileged', 'baseline', 'restricted'];

/** A standard at a release: `restricted:v1.25`, or as it is now. */
export interface Standard {
  readonly level: Level;
  /** Minor release; undefined is the latest. */
  readonly minor: number | undefined;
}

/** What a namespace demands of its pods, what it warns of, and what it notes. */
export interface Policy {
  readonly enforce: Standard;
  readonly warn: Standard;
  readonly audit: Standard;
}

/** Three levels as upstream compares them: less than nought where the first demands less. */
export function compareLevels(one: Level, other: Level): number {
  return levels.indexOf(one) - levels.indexOf(other);
}

/** `restricted:latest`. */
export function standardText({ level, minor }: Standard): string {
  return `${level}:${minor === undefined ? 'latest' : `v1.${minor}`}`;
}

const anything: Standard = { level: 'privileged', minor: undefined };

/**
 * The policy that a namespace's labels say, and what is wrong with them. What cannot be read is
 * taken to demand the most where it is enforced, and nothing where it is only told.
 */
export function policyOf(
  labels: Readonly<Record<string, string>>,
  dialect: Dialect,
): { readonly policy: Policy; readonly errors: readonly FieldError[] } {
  const errors: FieldError[] = [];
  const read = (mode: 'enforce' | 'warn' | 'audit') => {
    const levelLabel = dialect.label(mode, 'pod-security');
    const versionLabel = dialect.label(`${mode}-version`, 'pod-security');
    const own = (label: string) => (Object.hasOwn(labels, label) ? labels[label] : undefined);
    const [levelText, versionText] = [own(levelLabel), own(versionLabel)];
    const level = levels.find((one) => one === levelText);
    const minor = versionText === undefined ? undefined : minorOf(versionText);
    if (levelText !== undefined && level === undefined) {
      const why = `must be one of ${levels.join(', ')}`;
      errors.push(invalid(`metadata.labels[${levelLabel}]`, levelText, why));
    }
    if (minor === 'unreadable') {
      const why = 'must be "latest" or "v1.x"';
      errors.push(invalid(`metadata.labels[${versionLabel}]`, versionText ?? '', why));
    }
    return { levelText, level, versionText, minor: minor === 'unreadable' ? undefined : minor };
  };
  const [enforce, audit, warn] = [read('enforce'), read('audit'), read('warn')];
  const strictest = enforce.levelText === undefined ? anything.level : 'restricted';
  const enforced = { level: enforce.level ?? strictest, minor: enforce.minor };
  const told = { level: warn.level ?? anything.level, minor: warn.minor };
  const followsEnforced =
    warn.levelText === undefined && enforce.level !== undefined && enforce.level !== told.level;
  const warned = followsEnforced
    ? { level: enforced.level, minor: warn.versionText === undefined ? enforced.minor : told.minor }
    : told;
  const noted = { level: audit.level ?? anything.level, minor: audit.minor };
  return { policy: { enforce: enforced, warn: warned, audit: noted }, errors };
}

function minorOf(text: string): number | undefined | 'unreadable' {
  if (text === 'latest') return undefined;
  const digits = /^v1\.(0|[1-9]\d{0,5})$/.exec(text)?.[1];
  return digits === undefined ? 'unreadable' : Number(digits);
}
