import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { flagRuns } from './flags-run.ts';

const { start, run, refuses, path } = await flagRuns();
const total = 'apiserver_request_total';

/** The values of a label of a metric. */
function valuesOf(text: string, { metric, label }: { metric: string; label: string }) {
  const lines = text.split('\n').filter((line) => line.startsWith(`${metric}{`));
  return new Set(lines.map((line) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1]));
}

describe('metrics by flags', () => {
  test('VER-6: --disabled-metrics are not shown', async () => {
    const { get, as } = await start(`--disabled-metrics=${total},process_start_time_seconds`);
    await get('/api/v1/nodes', as);
    const { text } = await get('/metrics', as);
    expect(text).not.toContain(total);
    expect(text).not.toContain('process_start_time_seconds');
    expect(text).toContain('apiserver_request_duration_seconds');
  });

  test('VER-6: --allow-metric-labels limits a label to the listed values', async () => {
    const { get, as } = await start(`--allow-metric-labels=${total},verb=GET,LIST`);
    await get('/api/v1/namespaces/default', as);
    await get('/api/v1/nodes?watch=true&timeoutSeconds=1', as);
    const { text } = await get('/metrics', as);
    const verbs = valuesOf(text, { metric: total, label: 'verb' });
    expect([...verbs].every((verb) => ['GET', 'LIST', 'unexpected'].includes(verb ?? ''))).toBe(
      true,
    );
    expect(verbs).toContain('GET');
    expect(verbs).toContain('unexpected');
    expect(text).toMatch(/^cardinality_enforcement_unexpected_categorizations_total [1-9]\d*$/m);
  });

  test('VER-6: --allow-metric-labels-manifest does the same from a file', async () => {
    const file = path('labels.yaml');
    writeFileSync(file, `${total},code: "418"\n`);
    const { get, as } = await start(`--allow-metric-labels-manifest=${file}`);
    await get('/version', as);
    const { text } = await get('/metrics', as);
    expect(valuesOf(text, { metric: total, label: 'code' })).toEqual(new Set(['unexpected']));
  });

  test('VER-6: an invalid manifest stops the start', async () => {
    const file = path('wrong.yaml');
    writeFileSync(file, '- a\n');
    const flag = `--allow-metric-labels-manifest=${file}`;
    await refuses('is not a map of strings', '--storage-backend=memory', flag);
  });

  test.each([
    [
      '--allow-metric-labels=m=v',
      '--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`',
    ],
    ['--allow-metric-labels=m', 'm must be formatted as key=value'],
    ['--allow-metric-labels-manifest=/nowhere/m.yaml', 'open /nowhere/m.yaml: no such file'],
    ['--logging-format=xml', 'format: Invalid value: "xml": Unsupported log format'],
    ['--version=v1.2.3', '--version" flag: this server has one version, true or raw shows it'],
  ])('VER-7: %s stops the start', (flag, message) => refuses(message, flag));
});

describe('the log and the version by flags', () => {
  test('OPS-4: --logging-format=text writes klog’s format', async () => {
    const dataDir = path('text-log');
    const flags = ['--storage-backend=memory', '--secure-port=0', '--bind-address=127.0.0.1'];
    const taken = await start();
    const busy = `--secure-port=${taken.port}`;
    const all = [...flags, busy, `--data-dir=${dataDir}`, '--logging-format=text'];
    const warned = ['--service-account-max-token-expiration=2h'];
    const { code, stderr } = await run('serve', ...all, ...warned);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ wheelhouse\] "service-account-extend-token-expiration is true,/,
    );
  });

  test('VER-7: --version, --version=raw and --version=false', async () => {
    const line = await run('serve', '--version');
    expect(line).toMatchObject({ code: 0, stderr: '' });
    expect(line.stdout).toMatch(/ v1\.\d+\.\d+\n$/);
    const raw = await run('serve', '--version=raw');
    expect(raw.code).toBe(0);
    expect(JSON.parse(raw.stdout)).toMatchObject({ major: '1', minor: '32' });
    await refuses('unknown flag: --nothing', '--version=false', '--nothing');
  });
});
