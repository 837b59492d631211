import {
  JsonPathError,
  type JsonPathStep,
  type JsonValue,
  parseJsonPath,
  valuesAtJsonPath,
} from '@wheelhouse/machinery';

/**
 * Reads the first value at a JSONPath as printer columns and selectable fields have them
 * (`.spec.a`, `.items[-1:]`, `.conditions[?(@.type=="Ready")].status`, `..name`). Undefined for a path
 * that is none; the reader gives undefined where the path leads nowhere.
 */
export function pathReader(
  path: string,
): ((value: JsonValue) => JsonValue | undefined) | undefined {
  const parsed = parsedPath(path);
  return parsed && ((value) => valuesAtJsonPath(parsed, value)?.[0]);
}

/** Whether a path's reader may look at the member that names lead to, or at what holds it. */
export function mayRead(path: string, names: readonly string[]): boolean {
  const parsed = parsedPath(path);
  return parsed !== undefined && mayLead(parsed.steps, names);
}

function parsedPath(path: string) {
  try {
    return parseJsonPath(path);
  } catch (error) {
    if (error instanceof JsonPathError) return undefined;
    throw error;
  }
}

function mayLead(steps: readonly JsonPathStep[], names: readonly string[]): boolean {
  for (const [at, name] of names.entries()) {
    const step = steps[at];
    if (step === undefined || step.kind === 'descend') return true;
    if (step.kind === 'union') {
      return step.paths.some((one) => mayLead([...one, ...steps.slice(at + 1)], names.slice(at)));
    }
    if (step.kind !== 'all' && !(step.kind === 'member' && step.name === name)) return false;
  }
  return true;
}
