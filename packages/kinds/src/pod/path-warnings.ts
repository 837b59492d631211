import {
  type JsonObject,
  listedMax,
  pairWarningsMax,
  withoutTrailingSlashes,
} from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { PodSpec, Volume, VolumeProjection } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';
import { isList, objectAt, objectsAt } from '../rules/fill.ts';

/** A file in a volume, and its source; empty if the volume has only one source. */
interface PlacedFile {
  readonly path: string;
  readonly source: string;
}

/**
 * Returns warnings about volumes that place two files at the same path, or a file where another
 * file needs a directory, in steps (TRUST-2).
 */
export function pathWarnings(spec: Stored<PodSpec>): Generator<void, string[]> {
  return flatMapSteps(spec.volumes ?? [], function* (volume) {
    return [
      ...(yield* mappedWarnings(volume, 'configMap')),
      ...(yield* mappedWarnings(volume, 'secret')),
      ...(yield* mappedWarnings(volume, 'downwardAPI')),
      ...(yield* projectedWarnings(volume)),
    ];
  });
}

const quoted = (text: string) => JSON.stringify(text);

const warning = (volume: Stored<Volume>, kind: string, body: string) =>
  `volume ${quoted(volume.name ?? '')} (${kind}): overlapping paths: ${body}`;

/** The name of each source in warnings, and the member of a volume that names its object. */
const sourceNames = {
  configMap: { shown: 'ConfigMap', ofVolume: 'name' },
  secret: { shown: 'Secret', ofVolume: 'secretName' },
  downwardAPI: { shown: 'DownwardAPI', ofVolume: undefined },
} as const;

const titleOf = (shown: string, name: string) => `${shown} ${quoted(name)}`;

function* mappedWarnings(
  volume: Stored<Volume>,
  kind: keyof typeof sourceNames,
): Generator<void, string[]> {
  const { shown, ofVolume } = sourceNames[kind];
  const source = objectAt(volume, kind);
  if (source === undefined) return [];
  const title = ofVolume === undefined ? shown : titleOf(shown, textAt(source, ofVolume));
  const bodies = yield* overlaps(filesOf(source, ''), []);
  return bodies.map((body) => warning(volume, title, body));
}

const filesOf = (holder: JsonObject, source: string): PlacedFile[] =>
  objectsAt(holder, 'items').map((item) => ({ path: textAt(item, 'path'), source }));

function* projectedWarnings(volume: Stored<Volume>): Generator<void, string[]> {
  const earlierFiles: PlacedFile[] = [];
  // kube-apiserver reuses the files of the previous source for a source that lists none.
  let files: readonly PlacedFile[] = [];
  const warnings: string[] = [];
  for (const source of volume.projected?.sources ?? []) {
    if (warnings.length >= pairWarningsMax) break;
    if (Object.values(source).every((value) => value === null)) {
      warnings.push(`volume ${quoted(volume.name ?? '')} (Projected) has no sources provided`);
      continue;
    }
    files = projectedFiles(source) ?? files;
    for (const body of yield* overlaps(files, earlierFiles)) {
      warnings.push(warning(volume, 'Projected', body));
    }
  }
  return warnings;
}

function projectedFiles(source: Stored<VolumeProjection>): readonly PlacedFile[] | undefined {
  for (const kind of ['configMap', 'secret', 'downwardAPI'] as const) {
    const projection = source[kind];
    if (projection === undefined || !isList(projection, 'items')) continue;
    const { shown, ofVolume } = sourceNames[kind];
    return filesOf(
      projection,
      ofVolume === undefined ? shown : titleOf(shown, textAt(projection, 'name')),
    );
  }
  const token = source.serviceAccountToken;
  if (token !== undefined) return [{ path: token.path ?? '', source: 'ServiceAccountToken' }];
  const bundle = source.clusterTrustBundle;
  if (bundle === undefined) return undefined;
  const title = titleOf('ClusterTrustBundle', bundle.name ?? bundle.signerName ?? '');
  return [{ path: bundle.path ?? '', source: title }];
}

/** Describes the files whose paths overlap `earlierFiles`; adds the files to that list. */
function* overlaps(
  files: readonly PlacedFile[],
  earlierFiles: PlacedFile[],
): Generator<void, string[]> {
  const warnings: string[] = [];
  for (const [index, { path, source }] of files.entries()) {
    if (index % filesPerStep === 0) yield;
    const file = { path: withoutTrailingSlashes(path), source };
    for (const earlier of earlierFiles) {
      if (!conflict(file.path, earlier.path)) continue;
      if (warnings.length >= pairWarningsMax) return warnings;
      warnings.push(`${shownFile(file)} with ${shownFile(earlier)}`);
    }
    if (earlierFiles.length < comparedMax) earlierFiles.push(file);
  }
  return warnings;
}

/** Files that one step compares with earlier ones. */
const filesPerStep = 20;

/** Upper bound of the files that one file is compared with. */
const comparedMax = 2 * listedMax;

const conflict = (left: string, right: string) =>
  left !== '' && right !== '' && (isWithin(left, right) || isWithin(right, left));

const isWithin = (path: string, outer: string) =>
  path.startsWith(outer) && (path.length === outer.length || path[outer.length] === '/');

const shownFile = ({ path, source }: PlacedFile) =>
  source === '' ? quoted(path) : `${quoted(path)} (${source})`;
