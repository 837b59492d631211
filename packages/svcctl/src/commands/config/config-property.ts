import { kubeconfigShape, type Shape } from '@wheelhouse/client';
import { isObject, type JsonObject, member, problemText, setMember } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError } from '../../io.ts';
import {
  bodyNames,
  changeCurrentContext,
  changeEntry,
  changeFile,
  defaultFile,
  exactly,
  type ListName,
  readMerged,
} from '../../kubeconfig-edit.ts';
import type { Session } from '../../session.ts';

/** What a dotted name leads to. */
interface Property {
  /** The list and entry it is in; undefined for a member of the file itself. */
  readonly entry: { readonly list: ListName; readonly name: string } | undefined;
  /** The members below that. */
  readonly path: readonly string[];
  readonly shape: Shape;
}

const isList = (name: string): name is ListName => Object.hasOwn(bodyNames, name);

/**
 * Reads a dotted name. An entry's name may have dots itself: it ends where a member of such entries
 * follows. Throws CliError.
 */
function parseProperty(text: string): Property {
  if (text === '') throw new CliError('you must specify a property');
  const [head = '', ...rest] = text.split('.');
  if (!isList(head)) {
    const path = [head, ...rest];
    return { entry: undefined, path, shape: shapeAt(kubeconfigShape, path, text) };
  }
  const entries = shapeAt(kubeconfigShape, [head], text);
  const body = bodyShape(entries, bodyNames[head]);
  if (rest.length === 0) return { entry: { list: head, name: '' }, path: [], shape: entries };
  const memberIndex = rest.findIndex((part, at) => at > 0 && Object.hasOwn(body.members, part));
  const end = memberIndex < 0 ? rest.length : memberIndex;
  const path = rest.slice(end);
  return {
    entry: { list: head, name: rest.slice(0, end).join('.') },
    path,
    shape: shapeAt(body, path, text),
  };
}

type Members = Extract<Shape, { members: unknown }>;

function bodyShape(entries: Shape, key: string): Members {
  const item = typeof entries === 'object' && 'listOf' in entries ? entries.listOf : undefined;
  const found = typeof item === 'object' && 'members' in item ? item.members[key] : undefined;
  if (typeof found === 'object' && 'members' in found) return found;
  throw new Error(`the kubeconfig's ${key} has no members`);
}

function shapeAt(shape: Shape, path: readonly string[], text: string): Shape {
  let at = shape;
  for (const part of path) {
    if (typeof at === 'object' && 'members' in at && Object.hasOwn(at.members, part)) {
      at = at.members[part]!;
    } else if (typeof at === 'object' && 'mapOf' in at) {
      at = at.mapOf;
    } else {
      throw new CliError(`unable to parse ${text}: there is no ${part}`);
    }
  }
  return at;
}

export const setCommand: Command = {
  name: 'set',
  summary: 'Set an individual value in a kubeconfig file',
  usage: 'PROPERTY_NAME PROPERTY_VALUE',
  flags: [
    {
      name: 'set-raw-bytes',
      type: 'boolean',
      help: 'Values of byte fields are raw bytes, not base64',
    },
  ],
  async run(session, args) {
    const [name = '', value = ''] = exactly(2, args);
    if (value === '') throw new CliError('you cannot use set to unset a property');
    const property = parseProperty(name);
    const converted = convert(session, property.shape, value);
    await change(session, property, (body) => setAt(body, property.path, converted));
    session.io.out(`Property ${JSON.stringify(name)} set.\n`);
    return 0;
  },
};

function convert(session: Session, shape: Shape, value: string): string | boolean {
  if (typeof shape !== 'string') throw new CliError("can't set a map to a value");
  if (shape === 'text') return value;
  if (shape === 'boolean') {
    if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(value)) return true;
    if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(value)) return false;
    throw new CliError(
      problemText({ code: 'number', parser: 'ParseBool', text: value, problem: 'syntax' }),
    );
  }
  if (session.flags.boolean('set-raw-bytes')) return Buffer.from(value).toString('base64');
  if (Buffer.from(value, 'base64').toString('base64') === value) return value;
  throw new CliError(`error decoding input value: ${problemText({ code: 'base64' })}`);
}

function setAt(body: JsonObject, path: readonly string[], value: string | boolean): void {
  const last = path.at(-1)!;
  let at = body;
  for (const part of path.slice(0, -1)) {
    const next = member(at, part);
    const made: JsonObject = isObject(next) ? { ...next } : {};
    setMember(at, part, made);
    at = made;
  }
  setMember(at, last, value);
}

function unsetAt(body: JsonObject, path: readonly string[]): void {
  let at: JsonObject = body;
  for (const part of path.slice(0, -1)) {
    const next = member(at, part);
    if (!isObject(next)) return;
    at = next;
  }
  delete at[path.at(-1)!];
}

export const unsetCommand: Command = {
  name: 'unset',
  summary: 'Unset an individual value in a kubeconfig file',
  usage: 'PROPERTY_NAME',
  async run(session, args) {
    const [name = ''] = exactly(1, args);
    await unset(session, parseProperty(name));
    session.io.out(`Property ${JSON.stringify(name)} unset.\n`);
    return 0;
  },
};

async function unset(session: Session, property: Property): Promise<void> {
  const { entry, path } = property;
  if (entry === undefined) {
    await change(session, property, (body) => unsetAt(body, path));
    return;
  }
  const config = await readMerged(session);
  if (path.length > 0) {
    if (!config[entry.list].has(entry.name)) {
      throw new CliError(`current map key \`${entry.name}\` is invalid`);
    }
    await change(session, property, (body) => unsetAt(body, path));
    return;
  }
  const names = entry.name === '' ? [...config[entry.list].keys()] : [entry.name];
  for (const name of names.filter((one) => config[entry.list].has(one))) {
    await changeEntry(session, { list: entry.list, name }, () => undefined);
  }
}

async function change(
  session: Session,
  { entry, path }: Property,
  edit: (body: JsonObject) => void,
): Promise<void> {
  if (entry !== undefined) {
    if (path.length === 0) throw new CliError("can't set a map to a value");
    await changeEntry(session, entry, (body) => {
      edit(body);
      return body;
    });
    return;
  }
  if (path[0] === 'current-context') {
    const holder: JsonObject = {};
    edit(holder);
    await changeCurrentContext(session, String(holder['current-context'] ?? ''));
    return;
  }
  await changeFile(defaultFile(session), edit);
}
