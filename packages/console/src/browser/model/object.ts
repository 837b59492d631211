import { isObject, type JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { objectOf, objectsOf, textOf, Unreachable } from './failure.ts';
import { apiVersionOf, type Kind, type ObjectName, objectPath } from './kinds.ts';
import { readYaml } from './yaml.ts';

/** One object as stored. */
export interface LoadedObject {
  /** The server's YAML, which keeps all digits of numbers. */
  readonly text: string;
  readonly value: JsonObject;
  readonly resourceVersion: string;
}

/** Accepts YAML for objects and failures. */
export const yamlType = 'application/yaml';

/** Reads an object. Rejects like the API. */
export async function loadObject(
  api: Api,
  of: ObjectName,
  options: { readonly signal?: AbortSignal } = {},
): Promise<LoadedObject> {
  const { text } = await api.send({ path: objectPath(of), accept: yamlType, ...options });
  return loadedFrom(text);
}

/** Parses an object from a YAML response. */
export function loadedFrom(text: string): LoadedObject {
  const read = readYaml(text);
  if (read.fault !== undefined || !isObject(read.value)) {
    throw new Unreachable(new Error('the response is not an object'));
  }
  const resourceVersion = textOf(objectOf(read.value, 'metadata'), 'resourceVersion');
  return { text, value: read.value, resourceVersion };
}

/** An owner of an object; `name` is undefined if the server does not serve its kind. */
interface Owner {
  readonly text: string;
  readonly isController: boolean;
  readonly name: ObjectName | undefined;
}

/** The owners of an object (`metadata.ownerReferences`) with their routes. */
export function ownersOf(object: JsonObject, kinds: readonly Kind[]): Owner[] {
  const metadata = objectOf(object, 'metadata');
  return objectsOf(metadata, 'ownerReferences').map((reference) => {
    const kind = kindOf(kinds, reference);
    const name = textOf(reference, 'name');
    const namespace =
      kind?.scope === 'Namespaced' ? textOf(metadata, 'namespace') || undefined : undefined;
    return {
      text: `${textOf(reference, 'kind')}/${name}`,
      isController: reference.controller === true,
      name: kind === undefined ? undefined : { kind, namespace, name },
    };
  });
}

/** The kind of an `apiVersion` and `kind`. */
export function kindOf(kinds: readonly Kind[], named: JsonObject): Kind | undefined {
  const apiVersion = textOf(named, 'apiVersion');
  const name = textOf(named, 'kind');
  return kinds.find((kind) => kind.kind === name && apiVersionOf(kind) === apiVersion);
}
