import { ApiError } from '@wheelhouse/client';
import { isObject, type JsonObject, member, parseQuantity } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt, valueAt } from '../objects.ts';
import { targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { changeContainers } from './pod-spec.ts';

/** An object, its Pod specification, and which of the containers are meant. */
interface Listing {
  readonly object: JsonObject;
  readonly spec: JsonObject;
  readonly selector: string;
}

/** Prints the variables of each container; with `--resolve` the values that they refer to. */
export async function listEnvironment(session: Session, listing: Listing): Promise<void> {
  const { object, spec, selector } = listing;
  const containers: JsonObject[] = [];
  changeContainers(spec, selector, (container) => {
    containers.push(container);
    return container;
  });
  for (const container of containers) {
    const name = textAt(container, 'name');
    session.io.out(`# ${textAt(object, 'kind')} ${nameOf(object)}, container ${name}\n`);
    const failures = new Map<string, string[]>();
    for (const variable of listAt(container, 'env')) {
      const own = textAt(variable, 'name');
      const line = await variableLine(session, { object, container, variable }, (message) =>
        failures.set(message, [...(failures.get(message) ?? []), own]),
      );
      session.io.out(`${line}\n`);
    }
    const lines = [...failures].map(
      ([message, names]) =>
        `error retrieving reference for ${names.sort().join(', ')}: ${message}\n`,
    );
    session.io.err(lines.sort().join(''));
  }
}

/** A variable, and what its value may be taken from. */
interface Place {
  readonly object: JsonObject;
  readonly container: JsonObject;
  readonly variable: JsonObject;
}

async function variableLine(
  session: Session,
  place: Place,
  onFailure: (message: string) => void,
): Promise<string> {
  const { variable } = place;
  const name = textAt(variable, 'name');
  const { valueFrom } = variable;
  if (!isObject(valueFrom)) return `${name}=${textAt(variable, 'value')}`;
  const reference = `# ${name} from ${referenceText(valueFrom)}`;
  if (!session.flags.boolean('resolve')) return reference;
  try {
    return `${name}=${await resolved(session, place, valueFrom)}`;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof CliError)) throw error;
    onFailure(error.message);
    return reference;
  }
}

function referenceText({ configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef }: JsonObject) {
  const key = (ref: JsonObject) => `${textAt(ref, 'name')}, key ${textAt(ref, 'key')}`;
  if (isObject(configMapKeyRef)) return `configmap ${key(configMapKeyRef)}`;
  if (isObject(secretKeyRef)) return `secret ${key(secretKeyRef)}`;
  if (isObject(fieldRef)) return `field path ${textAt(fieldRef, 'fieldPath')}`;
  if (isObject(resourceFieldRef)) {
    const container = textAt(resourceFieldRef, 'containerName');
    const prefix = container === '' ? '' : `${container}/`;
    return `resource field ${prefix}${textAt(resourceFieldRef, 'resource')}`;
  }
  return 'invalid valueFrom';
}

async function resolved(session: Session, place: Place, from: JsonObject): Promise<string> {
  const { configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef } = from;
  if (isObject(secretKeyRef)) {
    const value = await valueOfKey(session, place, { kind: 'Secret', ref: secretKeyRef });
    return Buffer.from(value, 'base64').toString();
  }
  if (isObject(configMapKeyRef)) {
    return valueOfKey(session, place, { kind: 'ConfigMap', ref: configMapKeyRef });
  }
  if (isObject(fieldRef)) return valueOfField(place.object, textAt(fieldRef, 'fieldPath'));
  if (isObject(resourceFieldRef)) return valueOfResource(place.container, resourceFieldRef);
  throw new CliError('invalid valueFrom');
}

async function valueOfKey(
  session: Session,
  { object }: Place,
  { kind, ref }: { readonly kind: 'ConfigMap' | 'Secret'; readonly ref: JsonObject },
): Promise<string> {
  const [name, key] = [textAt(ref, 'name'), textAt(ref, 'key')];
  const namespace = namespaceOf(object) || session.namespace;
  const resource = await session.resourceOfKind(kind);
  const source = await session.client.get(targetPath({ resource, namespace, name }));
  const value = member(objectAt(source, 'data'), key);
  if (typeof value === 'string') return value;
  const label = kind === 'Secret' ? 'secret' : 'config map';
  throw new CliError(`key ${key} not found in ${label} ${name}`);
}

function valueOfField(object: JsonObject, path: string): string {
  const subscript = /^metadata\.(annotations|labels)\['(.*)'\]$/.exec(path);
  if (subscript !== null) {
    return textAt(objectAt(object, 'metadata', subscript[1] ?? ''), subscript[2] ?? '');
  }
  const [first = '', name = '', ...more] = path.split('.');
  const isMap = ['annotations', 'labels'].includes(name);
  const isText = ['name', 'namespace', 'uid'].includes(name);
  if (first !== 'metadata' || more.length > 0 || !(isMap || isText)) {
    throw new CliError(`unsupported fieldPath: ${path}`);
  }
  if (isText) return textAt(object, 'metadata', name);
  const map = objectAt(object, 'metadata', name);
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${JSON.stringify(map[key])}`)
    .join('\n');
}

/** A limit or request in units of the divisor, rounded up. */
function valueOfResource(container: JsonObject, ref: JsonObject): string {
  const resource = textAt(ref, 'resource');
  const dot = resource.indexOf('.');
  const amount = valueAt(container, 'resources', resource.slice(0, dot), resource.slice(dot + 1));
  const isKnown = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.test(resource);
  if (!isKnown) throw new CliError(`Unsupported container resource : ${resource}`);
  const divisor = String(ref['divisor'] ?? '0');
  const unit = numberOf(divisor) === 0 ? 1 : numberOf(divisor);
  return String(Math.ceil(numberOf(String(amount ?? '0')) / unit));
}

function numberOf(text: string): number {
  const quantity = parseQuantity(text);
  return 'error' in quantity ? 0 : Number(quantity.nano) / 1e9;
}
