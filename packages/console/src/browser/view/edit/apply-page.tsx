import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Attempt } from '../../model/access.ts';
import {
  type Applied,
  applyManifests,
  type ManifestFile,
  manifestsIn,
} from '../../model/editing.ts';
import { attemptOn } from '../../model/permissions.ts';
import { objectRoute } from '../../model/route.ts';
import { droppedEvent, readFiles } from '../drop-zone.tsx';
import { useApp, useLatest, usePage, useRefusal } from '../parts/app.ts';
import { Button, Empty, Link, NamespaceInput, Toggle } from '../parts/basics.tsx';
import { ChangeList, ChangeText } from '../parts/changes.tsx';
import { defaultManager } from './editing-state.ts';

type Ownership = Parameters<typeof applyManifests>[2]['ownership'];

/** The results of applying or dry-running the files. */
interface Results {
  readonly kind: 'dry run' | 'applied';
  readonly applied: readonly Applied[];
}

/** Interval at which the results of a run in progress are shown. */
const progressMs = 250;

/** Previews and applies manifest files. */
export function ApplyPage() {
  const app = useApp();
  usePage('Apply manifests');
  const [files, setFiles] = useState<readonly ManifestFile[]>([]);
  const [namespace, setNamespace] = useState('default');
  const [isForced, setForced] = useState(false);
  const [results, setResults] = useState<Results>();
  const begin = useLatest();
  const run = async (
    chosen: readonly ManifestFile[],
    kind: Results['kind'],
    ownership: Ownership = isForced ? 'forced' : 'respected',
  ): Promise<void> => {
    const isLatest = begin();
    let applied: readonly Applied[] = [];
    const show = (): void => {
      if (isLatest()) setResults({ kind, applied });
    };
    const { kinds } = app.workspace.discovered ?? app.discovered;
    const manifests = chosen.flatMap((file) => manifestsIn(file, { kinds, namespace }));
    show();
    // Rendering all results after each of thousands of manifests would take longer than applying them.
    const timer = app.clock.every(progressMs, show);
    applied = await applyManifests(app.api, manifests, {
      dryRun: kind === 'dry run' ? 'only' : 'no',
      ownership,
      fieldManager: defaultManager,
      onProgress: (done) => {
        applied = done;
      },
    });
    timer.stop();
    show();
    if (kind === 'applied') app.announce('Applied.');
  };
  const take = (chosen: readonly ManifestFile[]): void => {
    if (chosen.length === 0) return;
    setFiles(chosen);
    void run(chosen, 'dry run');
  };
  useDropped(take);
  return (
    <section class="page">
      <header class="heading">
        <h1>Apply manifests</h1>
      </header>
      <Sources take={take} />
      <div class="bar">
        <NamespaceInput value={namespace} placeholder="default" onText={setNamespace} />
        <Toggle
          label="Take ownership of fields from other managers"
          isOn={isForced}
          onChange={setForced}
        />
        <Runs {...{ files, namespace, run }} />
      </div>
      {results === undefined ? (
        <Empty>Select manifests to preview their changes with a dry run.</Empty>
      ) : (
        <ResultList
          results={results}
          takeOver={() => {
            setForced(true);
            return run(files, 'dry run', 'forced');
          }}
        />
      )}
    </section>
  );
}

/** The buttons of the two runs. */
function Runs(props: {
  readonly files: readonly ManifestFile[];
  readonly namespace: string;
  readonly run: (files: readonly ManifestFile[], kind: Results['kind']) => Promise<void>;
}) {
  const { files, namespace, run } = props;
  const { kinds } = useApp().discovered;
  // The page is rendered after each manifest, and must not parse all of them each time.
  const attempts = useMemo(
    () => attemptsOf(files, { kinds, namespace }),
    [files, kinds, namespace],
  );
  const refusal = useRefusal(attempts);
  const shared = { refusal, disabled: files.length === 0 };
  return (
    <div class="tools">
      <Button {...shared} act={() => run(files, 'dry run')}>
        Dry run
      </Button>
      <Button {...shared} act={() => run(files, 'applied')} class="primary">
        Apply
      </Button>
    </div>
  );
}

/** Number of manifests whose permissions are checked before the files can be applied. */
const checkedMax = 20;

function attemptsOf(
  files: readonly ManifestFile[],
  options: Parameters<typeof manifestsIn>[1],
): Attempt[] {
  return files
    .flatMap((file) => manifestsIn(file, options))
    .flatMap(({ target }) => (target === undefined ? [] : [attemptOn(target, 'patch')]))
    .slice(0, checkedMax);
}

/** Passes files that are dropped before or after the page opens to `take`. */
function useDropped(take: (files: readonly ManifestFile[]) => void): void {
  const app = useApp();
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const takeDropped = (): void => {
      const { current } = app.dropped;
      app.dropped.current = [];
      latest.current(current);
    };
    takeDropped();
    addEventListener(droppedEvent, takeDropped);
    return () => removeEventListener(droppedEvent, takeDropped);
  }, [app.dropped]);
}

function Sources(props: { readonly take: (files: readonly ManifestFile[]) => void }) {
  const { take } = props;
  const [pasted, setPasted] = useState('');
  return (
    <div class="sources">
      <label class="file-drop">
        <strong>Drop files anywhere or select them</strong>
        <span class="faint">YAML or JSON, any number of documents</span>
        <input
          type="file"
          multiple
          accept=".yaml,.yml,.json"
          aria-label="Manifest files"
          onChange={(event) => {
            void readFiles([...(event.currentTarget.files ?? [])]).then(take);
          }}
        />
      </label>
      <div class="paste">
        <textarea
          aria-label="Manifests"
          spellcheck={false}
          rows={6}
          placeholder="…or paste manifests here"
          value={pasted}
          onInput={(event) => setPasted(event.currentTarget.value)}
        />
        <Button
          act={() => take([{ name: 'pasted', text: pasted }])}
          disabled={pasted.trim() === ''}
        >
          Preview
        </Button>
      </div>
    </div>
  );
}

const labels: Readonly<Record<Results['kind'], Readonly<Record<Applied['effect'], string>>>> = {
  'dry run': {
    created: 'would be created',
    changed: 'would change',
    unchanged: 'would not change',
    rejected: 'would be rejected',
  },
  applied: { created: 'created', changed: 'changed', unchanged: 'unchanged', rejected: 'rejected' },
};

const tones: Readonly<Record<Applied['effect'], string>> = {
  created: 'good',
  changed: 'warn',
  unchanged: 'plain',
  rejected: 'bad',
};

function ResultList(props: {
  readonly results: Results;
  /** Repeats the dry run, taking ownership of fields from other managers. */
  readonly takeOver: () => Promise<void>;
}) {
  const { kind, applied } = props.results;
  return (
    <ul class="cards applied" aria-live="polite">
      {applied.map(({ manifest, effect, changes, message, warnings, isOwned }) => (
        <li key={`${manifest.place} ${manifest.title}`} class="card">
          <div class="entry-head">
            {manifest.target === undefined ? (
              <strong>{manifest.title}</strong>
            ) : (
              <Link to={objectRoute(manifest.target)}>{manifest.title}</Link>
            )}
            <span class={`chip ${tones[effect]}`}>{labels[kind][effect]}</span>
            <span class="faint">{manifest.place}</span>
          </div>
          {message !== '' && <pre class="fault">{message}</pre>}
          {isOwned && (
            <p class="hint">
              Another manager owns these fields. Remove them from the file or take ownership of
              them. <Button act={props.takeOver}>Preview taking ownership</Button>
            </p>
          )}
          {warnings.map((warning) => (
            <p key={warning} class="warning">
              {warning}
            </p>
          ))}
          {changes.length > 0 && (
            <details open={effect === 'changed'}>
              <summary>
                {changes.length} field{changes.length === 1 ? '' : 's'}
              </summary>
              <ChangeList changes={changes} none="" />
              <ChangeText changes={changes} />
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}
