import { isObject, type JsonValue, member } from '../base/json.ts';

/**
 * One step of a path: a member, an item, all items, or the items a member of which equals a text.
 */
type Step =
  | { readonly name: string }
  | { readonly index: number }
  | { readonly all: true }
  | { readonly where: readonly string[]; readonly equals: string };

const stepForms: readonly (readonly [RegExp, (match: RegExpExecArray) => Step])[] = [
  [/^\[\?\(@((?:\.[\w-]+)+)\s*==\s*(?:"([^"]*)"|'([^']*)')\)\]/, filterStep],
  [/^\['((?:[^'\\]|\\.)*)'\]/, (match) => ({ name: unescaped(match[1]) })],
  [/^\["((?:[^"\\]|\\.)*)"\]/, (match) => ({ name: unescaped(match[1]) })],
  [/^\[(-?\d+)\]/, (match) => ({ index: Number(match[1]) })],
  [/^(?:\[\*\]|\.\*)/, () => ({ all: true })],
  [/^\.((?:[^.[\]\\]|\\.)+)/, (match) => ({ name: unescaped(match[1]) })],
];

function filterStep(match: RegExpExecArray): Step {
  return { where: (match[1] ?? '').slice(1).split('.'), equals: match[2] ?? match[3] ?? '' };
}

function unescaped(text: string | undefined): string {
  return (text ?? '').replace(/\\(.)/g, '$1');
}

/**
 * Reads the first value at a JSONPath of the kind printer columns and selectable fields use
 * (`.spec.a`, `.items[0]`, `.conditions[?(@.type=="Ready")].status`). Undefined for a path of
 * another form; the reader gives undefined where the path leads nowhere.
 */
export function pathReader(
  path: string,
): ((value: JsonValue) => JsonValue | undefined) | undefined {
  const steps = path === '.' ? [] : parse(path);
  if (steps === undefined) return undefined;
  return (value) => {
    let values: JsonValue[] = [value];
    for (const step of steps) values = values.flatMap((one) => take(step, one));
    return values[0];
  };
}

/** Whether a path's reader may look at the member that names lead to, or at what holds it. */
export function mayRead(path: string, names: readonly string[]): boolean {
  const steps = path === '.' ? [] : parse(path);
  if (steps === undefined) return false;
  return names.every((name, at) => {
    const step = steps[at];
    return step === undefined || 'all' in step || ('name' in step && step.name === name);
  });
}

function parse(path: string): Step[] | undefined {
  const steps: Step[] = [];
  let rest = path;
  while (rest !== '') {
    const step = firstStep(rest);
    if (step === undefined) return undefined;
    steps.push(step.step);
    rest = rest.slice(step.length);
  }
  return steps;
}

function firstStep(text: string): { step: Step; length: number } | undefined {
  for (const [form, make] of stepForms) {
    const match = form.exec(text);
    if (match !== null) return { step: make(match), length: match[0].length };
  }
  return undefined;
}

function take(step: Step, value: JsonValue): JsonValue[] {
  if ('name' in step) return own(value, step.name);
  if (!Array.isArray(value)) return 'all' in step && isObject(value) ? members(value) : [];
  if ('all' in step) return value;
  if ('index' in step) return value.slice(step.index, step.index + 1 || undefined);
  return value.filter((item) => {
    const found = step.where.reduce<JsonValue[]>(
      (values, name) => values.flatMap((one) => own(one, name)),
      [item],
    );
    return found[0] === step.equals;
  });
}

function own(value: JsonValue, name: string): JsonValue[] {
  const found = isObject(value) ? member(value, name) : undefined;
  return found === undefined ? [] : [found];
}

function members(value: { [name: string]: JsonValue | undefined }): JsonValue[] {
  return Object.values(value).filter((one) => one !== undefined);
}
