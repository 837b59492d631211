import { isObject, itemsOfList, type JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from '../api.ts';
import { type Change, changesBetween } from '../changes.ts';
import { type EditOutcome, saveEdit, validateEdit } from '../editing.ts';
import { ApiFailure, messageOf, objectOf, textOf } from '../failure.ts';
import type { Kind, ObjectName } from '../kinds.ts';
import { kindOf, loadObject } from '../object.ts';
import { printYaml, readYaml } from '../yaml.ts';

/** One object of a file of manifests. */
export interface Manifest {
  /** `web.yaml`, or `web.yaml, document 2` */
  readonly place: string;
  readonly text: string;
  /** `Deployment team/web`, as far as the text says. */
  readonly title: string;
  /** Undefined with the reason why it cannot be applied. */
  readonly target: ObjectName | undefined;
  readonly fault: string;
}

/** What applying a manifest would do, or did. */
export interface Applied {
  readonly manifest: Manifest;
  readonly effect: 'created' | 'changed' | 'unchanged' | 'refused';
  readonly changes: readonly Change[];
  readonly message: string;
  readonly warnings: readonly string[];
  /** The refusal is about fields that others own: they can be taken over. */
  readonly isOwned: boolean;
}

/** What others need comes first. */
const firstKinds = ['Namespace', 'CustomResourceDefinition'];

/** The objects of a file: its documents, and the items of lists among them. */
export function manifestsIn(
  file: { readonly name: string; readonly text: string },
  of: { readonly kinds: readonly Kind[]; readonly namespace: string },
): Manifest[] {
  const documents = documentsIn(file.text);
  const found = documents.flatMap((text, index): Manifest[] => {
    const place = documents.length === 1 ? file.name : `${file.name}, document ${index + 1}`;
    const read = readYaml(text);
    if (read.fault !== undefined) {
      const fault = `line ${read.fault.line}: ${read.fault.message}`;
      return [{ place, text, title: place, target: undefined, fault }];
    }
    const { value } = read;
    if (value === null) return [];
    if (!isObject(value)) {
      return [{ place, text, title: place, target: undefined, fault: 'it is not an object' }];
    }
    const items = itemsOfList(value);
    if (items === undefined) return [manifestOf({ place, text, value }, of)];
    return items
      .filter(isObject)
      .map((item, at) =>
        manifestOf({ place: `${place}, item ${at + 1}`, text: printYaml(item), value: item }, of),
      );
  });
  const rank = ({ target }: Manifest): number => {
    const at = firstKinds.indexOf(target?.kind.kind ?? '');
    return at < 0 ? firstKinds.length : at;
  };
  return found.sort((one, other) => rank(one) - rank(other));
}

/** The documents of a stream of YAML; those without any content are left out. */
function documentsIn(text: string): string[] {
  return text
    .split(/^---(?:[ \t].*)?$/m)
    .filter((one) => one.split('\n').some((line) => /^\s*[^#\s]/.test(line)));
}

function manifestOf(
  of: { readonly place: string; readonly text: string; readonly value: JsonObject },
  { kinds, namespace }: { readonly kinds: readonly Kind[]; readonly namespace: string },
): Manifest {
  const { place, text, value } = of;
  const metadata = objectOf(value, 'metadata');
  const name = textOf(metadata, 'name');
  const kind = kindOf(kinds, value);
  const named = textOf(value, 'kind') || 'object';
  if (kind === undefined || name === '') {
    const fault =
      kind === undefined
        ? `the server does not serve ${named} of ${textOf(value, 'apiVersion') || 'no version'}`
        : 'it has no name';
    return { place, text, title: `${named} ${name}`.trim(), target: undefined, fault };
  }
  const within =
    kind.scope === 'Namespaced' ? textOf(metadata, 'namespace') || namespace : undefined;
  const title = `${kind.kind} ${within === undefined ? '' : `${within}/`}${name}`;
  return { place, text, title, target: { kind, namespace: within, name }, fault: '' };
}

/**
 * Applies manifests on the server, or only says what applying them would do. One after the other, as
 * later ones may need earlier ones. Never rejects.
 */
export async function applyManifests(
  api: Api,
  manifests: readonly Manifest[],
  options: {
    readonly dryRun: 'only' | 'no';
    readonly ownership: 'respected' | 'forced';
    readonly fieldManager: string;
    readonly onProgress?: (applied: readonly Applied[]) => void;
  },
): Promise<Applied[]> {
  const done: Applied[] = [];
  for (const manifest of manifests) {
    done.push(await applyOne(api, manifest, options));
    options.onProgress?.([...done]);
  }
  return done;
}

async function applyOne(
  api: Api,
  manifest: Manifest,
  options: Parameters<typeof applyManifests>[2],
): Promise<Applied> {
  const { target, text, fault } = manifest;
  const refused = { manifest, effect: 'refused', changes: [], warnings: [] } as const;
  if (target === undefined) return { ...refused, message: fault, isOwned: false };
  const { fieldManager, ownership } = options;
  const edit = { target, mode: 'apply', text, fieldManager, ownership } as const;
  let before: JsonObject | undefined;
  try {
    before = (await loadObject(api, target)).value;
  } catch (error) {
    const isNew = error instanceof ApiFailure && error.code === 404;
    if (!isNew) return { ...refused, message: messageOf(error), isOwned: false };
  }
  const outcome = await (options.dryRun === 'only' ? validateEdit(api, edit) : saveEdit(api, edit));
  if (outcome.kind !== 'accepted') {
    return { ...refused, message: refusalText(outcome), isOwned: outcome.kind === 'owned' };
  }
  const { object, warnings } = outcome;
  const changes = changesBetween(before ?? { metadata: {} }, object.value).filter(
    ({ path: [first, second] }) =>
      first !== 'metadata' || !['managedFields', 'resourceVersion'].includes(String(second)),
  );
  const effect = before === undefined ? 'created' : changes.length === 0 ? 'unchanged' : 'changed';
  return { manifest, effect, changes, message: '', warnings, isOwned: false };
}

function refusalText(outcome: Exclude<EditOutcome, { kind: 'accepted' }>): string {
  if (outcome.kind !== 'invalid' || outcome.faults.length === 0) return outcome.message;
  const faults = outcome.faults.map(({ field, message, line }) => {
    const at = line === undefined ? '' : `line ${line}: `;
    return `${at}${field === '' ? '' : `${field}: `}${message}`;
  });
  return [outcome.message, ...faults].join('\n');
}
