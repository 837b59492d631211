import { isObject, type JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { objectOf, objectsOf, textOf, Unreachable } from './failure.ts';
import { apiVersionOf, type Kind, type ObjectName, objectPath } from './kinds.ts';
import { readYaml } from './yaml.ts';

/** One object as the server has it. */
export interface LoadedObject {
  /** The server's own YAML: no digit of it has been through a number. */
  readonly text: string;
  readonly value: JsonObject;
  readonly resourceVersion: string;
}

/** Asks for YAML, and for failures in it too. */
export const yamlType = 'application/yaml';

/** Reads an object. Rejects as the API does. */
export async function loadObject(
  api: Api,
  of: ObjectName,
  options: { readonly signal?: AbortSignal } = {},
): Promise<LoadedObject> {
  const { text } = await api.send({ path: objectPath(of), accept: yamlType, ...options });
  return loadedFrom(text);
}

/** An object out of an answer in YAML. */
export function loadedFrom(text: string): LoadedObject {
  const read = readYaml(text);
  if (read.fault !== undefined || !isObject(read.value)) {
    throw new Unreachable(new Error('the answer is no object'));
  }
  const resourceVersion = textOf(objectOf(read.value, 'metadata'), 'resourceVersion');
  return { text, value: read.value, resourceVersion };
}

/** An owner of an object; `name` is undefined when the server serves no such kind. */
export interface Owner {
  readonly text: string;
  readonly isController: boolean;
  readonly name: ObjectName | undefined;
}

/** Who owns an object (`metadata.ownerReferences`), each as an object to go to. */
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

/** The kind that an `apiVersion` and a `kind` name. */
export function kindOf(kinds: readonly Kind[], named: JsonObject): Kind | undefined {
  const apiVersion = textOf(named, 'apiVersion');
  const name = textOf(named, 'kind');
  return kinds.find((kind) => kind.kind === name && apiVersionOf(kind) === apiVersion);
}
