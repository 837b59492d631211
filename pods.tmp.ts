import { builtinKinds } from '@wheelhouse/kinds';
import { cloneJson, dialectOf, runInOnePiece } from '@wheelhouse/machinery';
import { decodeTypedSteps, removeOmitted, restoreOmitted, settleEmpty } from '@wheelhouse/schema';
import { cpuMs } from './lib.tmp.ts';
import { collectionsOf, filled } from './test/siege/growth-shapes.ts';

const dialect = dialectOf('svc');
const def = builtinKinds(dialect).find((d) => d.kind === 'Pod' && d.group === '')! as any;
const version = def.versions.find((v: any) => v.version === 'v1');
const only = new RegExp(process.argv[2] ?? '');
const variantsToRun = (process.argv[3] ?? 'equal,unknown').split(',') as any[];
const context = {
  user: { name: 't', uid: '', groups: [], extra: {} },
  nowMs: 0,
  dryRun: false,
  subresource: '',
};
const run = (work: any): number => {
  if (work === undefined) return 0;
  let longest = 0;
  if (typeof work !== 'function' && !('next' in Object(work))) return 0;
  const it = typeof work === 'function' ? undefined : work;
  for (;;) {
    const a = cpuMs();
    const s = it.next();
    longest = Math.max(longest, cpuMs() - a);
    if (s.done) return longest;
  }
};
/** measures call that may return a generator */
declare const gc: any;
const phase = (f: () => any): [number, any] => {
  gc({ type: 'minor' });
  const a = cpuMs();
  let work: any;
  try {
    work = f();
  } catch (e) {
    return [cpuMs() - a, e];
  }
  let longest = cpuMs() - a;
  if (work === undefined || work === null || typeof work !== 'object' || !('next' in work))
    return [longest, work];
  for (;;) {
    const b = cpuMs();
    let s;
    try {
      s = work.next();
    } catch (e) {
      return [Math.max(longest, cpuMs() - b), e];
    }
    longest = Math.max(longest, cpuMs() - b);
    if (s.done) return [longest, s.value];
  }
};
const example = { ...def.example, apiVersion: 'v1', kind: 'Pod' };
const out: [number, string][] = [];
const names = collectionsOf(version.schema).filter(({ steps }) => only.test(steps.join('.')));
console.log(names.length, 'collections');
for (const variant of variantsToRun)
  for (const collection of names) {
    const name = `${variant} ${collection.steps.join('.')}`;
    // reduce to the values limit
    let count = 20_000;
    let text = '';
    for (;;) {
      text = JSON.stringify(filled(example, collection, { variant, count }));
      const values = 1 + (text.match(/[,{[]/g)?.length ?? 0);
      const members = 16_384;
      if (
        (values <= 59_000 &&
          text.length < 3_100_000 &&
          (collection.schema.items !== undefined || count <= members - 10)) ||
        count < 100
      )
        break;
      count = Math.floor(count * Math.min(0.95, 59_000 / values));
    }
    const figures: Record<string, number> = {};
    for (let round = 0; round < 3; round += 1) {
      const note = (what: string, ms: number) => {
        const key = what;
        if (round > 0 || true)
          figures[key] =
            round === 0
              ? Math.max(figures[key + '!'] ?? 0, ms) &&
                ((figures[key + '!'] = ms), figures[key] ?? 0)
              : Math.max(figures[key] ?? 0, ms);
      };
      const decode = () => {
        try {
          return runInOnePiece(decodeTypedSteps(version.schema, JSON.parse(text))) as any;
        } catch (e) {
          return e;
        }
      };
      const object = decode();
      if (object instanceof Error) {
        figures['undecodable'] = -1;
        break;
      }
      note(
        'defaults',
        phase(() =>
          version.defaultSteps ? version.defaultSteps(object) : version.defaults?.(object),
        )[0],
      );
      settleEmpty(version.schema, object);
      note('prepare', phase(() => def.strategy.prepareForCreate?.(context, object))[0]);
      restoreOmitted(object);
      note('validate', phase(() => def.strategy.validateCreate?.(context, object, () => []))[0]);
      removeOmitted(object);
      note('warnings', phase(() => def.strategy.warnings?.(object, undefined))[0]);
      const old = cloneJson(object);
      const next = cloneJson(object);
      next.metadata.labels = { a: 'b' };
      note('prepareUpdate', phase(() => def.strategy.prepareForUpdate?.(context, next, old))[0]);
      note(
        'validateUpdate',
        phase(() => def.strategy.validateUpdate?.(context, next, old, () => []))[0],
      );
      note('warningsUpdate', phase(() => def.strategy.warnings?.(next, old))[0]);
      note('fields', phase(() => def.storage.fieldsOf?.(object))[0]);
      note(
        'cells',
        phase(() => (def.columns ?? version.columns ?? []).map((c: any) => c.cell?.(object, 0)))[0],
      );
    }
    const worst = Object.entries(figures)
      .filter(([k]) => !k.endsWith('!'))
      .sort((a, b) => b[1] - a[1]);
    const cold = Object.entries(figures)
      .filter(([k]) => k.endsWith('!'))
      .sort((a, b) => b[1] - a[1]);
    const top = Math.max(worst[0]?.[1] ?? 0, cold[0]?.[1] ?? 0);
    out.push([
      top,
      `${name} (${count}): later ${worst
        .slice(0, 2)
        .map(([k, v]) => `${k} ${v.toFixed(1)}`)
        .join(', ')}; first ${cold
        .slice(0, 2)
        .map(([k, v]) => `${k} ${v.toFixed(1)}`)
        .join(', ')}`,
    ]);
  }
out.sort((a, b) => b[0] - a[0]);
for (const [ms, line] of out.slice(0, 40)) console.log(ms.toFixed(1), line);
