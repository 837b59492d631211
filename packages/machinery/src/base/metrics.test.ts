import { describe, expect, test } from 'vitest';
import { createMetricRegistry } from './metrics.ts';

const plain = { help: 'h', stability: 'ALPHA', labels: [] } as const;
const create = (more: Partial<Parameters<typeof createMetricRegistry>[0]> = {}) =>
  createMetricRegistry({ release: '1.32', hidden: 'hidden', ...more });

describe('the text', () => {
  test('contains help with the stability, the type, and samples sorted by name', () => {
    const registry = create();
    const requests = registry.counter({
      name: 'requests_total',
      help: 'Counts\nrequests.',
      stability: 'STABLE',
      labels: ['verb', 'code'],
    });
    requests.of('GET', '200').add(1);
    requests.of('GET', '200').add(2);
    requests.of('a"\\\n', '404').add(1);
    registry
      .gauge({ ...plain, name: 'level' })
      .of()
      .set(-0.5);
    expect(registry.render()).toBe(
      [
        '# HELP level [ALPHA] h',
        '# TYPE level gauge',
        'level -0.5',
        '# HELP requests_total [STABLE] Counts\\nrequests.',
        '# TYPE requests_total counter',
        'requests_total{code="200",verb="GET"} 3',
        'requests_total{code="404",verb="a\\"\\\\\\n"} 1',
        '',
      ].join('\n'),
    );
  });

  test('contains cumulative buckets of a histogram', () => {
    const registry = create();
    const family = registry.histogram({ ...plain, name: 'd', labels: ['x'], buckets: [0.1, 1] });
    for (const value of [0.1, 0.05, 0.5, 7]) family.of('y').observe(value);
    expect(registry.render().split('\n').slice(2)).toEqual([
      'd_bucket{x="y",le="0.1"} 2',
      'd_bucket{x="y",le="1"} 3',
      'd_bucket{x="y",le="+Inf"} 4',
      'd_sum{x="y"} 7.65',
      'd_count{x="y"} 4',
      '',
    ]);
  });

  test('formats bounds as queries name them', () => {
    const registry = create();
    const buckets = [1e-8, 0.00005, 0.0001, 1, 131_072, 999_999, 1e6, 3_050_000, 15_552_000];
    registry.histogram({ ...plain, name: 'd', buckets }).of();
    const bounds = [...registry.render().matchAll(/le="([^"]+)"/g)].map(([, bound]) => bound);
    const large = ['131072', '999999', '1e+06', '3.05e+06', '1.5552e+07', '+Inf'];
    expect(bounds).toEqual(['1e-08', '5e-05', '0.0001', '1', ...large]);
  });

  test('contains quantiles of recent observations, and the sum and count of all', () => {
    const registry = create();
    let nowMs = 1000;
    const family = registry.summary({
      ...plain,
      name: 's',
      quantiles: [0.5, 0.99],
      maxAgeMs: 5000,
      now: () => nowMs,
    });
    const series = family.of();
    const shown = () => registry.render().match(/ \S+$/gm)?.slice(2).map(Number);
    for (let n = 1; n <= 100; n += 1) series.observe(n / 1000, nowMs);
    const [half, most, sum, count] = shown() ?? [];
    expect(half).toBeCloseTo(0.05, 2);
    expect((most ?? 0) / 0.099).toBeCloseTo(1, 1);
    expect(sum).toBeCloseTo(5.05, 6);
    expect(count).toBe(100);
    nowMs = 4999;
    series.observe(20, nowMs);
    expect((shown()?.[0] ?? 0) / 0.05).toBeCloseTo(1, 1);
    nowMs = 6000;
    expect((shown()?.[0] ?? 0) / 20).toBeCloseTo(1, 1);
    nowMs = 60_000;
    expect(shown()?.slice(0, 2)).toEqual([Number.NaN, Number.NaN]);
    expect(shown()?.[3]).toBe(101);
  });

  test('is in parts, which a metric that is set again meanwhile does not repeat', () => {
    const registry = create();
    const family = registry.gauge({ ...plain, name: 'level', labels: ['n'] });
    const set = () => {
      family.clear();
      for (let n = 0; n < 5000; n += 1) family.of(String(n)).set(n);
    };
    set();
    const whole = registry.render();
    const parts: string[] = [];
    for (const part of registry.parts()) {
      parts.push(part);
      set();
    }
    expect(parts.join('')).toBe(whole);
    expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(20_000);
  });

  test('omits metrics without series', () => {
    const registry = create();
    const family = registry.gauge({ ...plain, name: 'g' });
    expect(registry.render()).toBe('');
    family.of().set(1);
    family.clear();
    expect(registry.render()).toBe('');
  });
});

test('a name can be registered once', () => {
  const registry = create();
  registry.counter({ ...plain, name: 'a' });
  expect(() => registry.gauge({ ...plain, name: 'a' })).toThrow(
    'the metric a is already registered',
  );
});

test('series above the limit are not counted', () => {
  const registry = create();
  const family = registry.counter({ ...plain, name: 'a', labels: ['n'] });
  for (let n = 0; n < 20_010; n += 1) family.of(String(n)).add(1);
  expect(registry.render().split('\n').length).toBe(20_000 + 3);
});

describe('VER-6: deprecated metrics', () => {
  const renderWith = (from: string, hidden: 'hidden' | 'shown') => {
    const warned: string[] = [];
    const registry = create({ hidden, onDeprecated: ({ name }) => warned.push(name) });
    registry
      .counter({ ...plain, name: 'old', deprecatedFrom: from })
      .of()
      .add(1);
    return { text: registry.render(), warned };
  };

  test('VER-6: their help reports the deprecation, and a warning is reported', () => {
    const { text, warned } = renderWith('1.32', 'hidden');
    expect(text).toContain('# HELP old [ALPHA] (Deprecated since 1.32.0) h');
    expect(warned).toEqual(['old']);
  });

  test('VER-6: they are hidden from the next release on, unless shown explicitly', () => {
    expect(renderWith('1.31', 'hidden')).toEqual({ text: '', warned: [] });
    expect(renderWith('1.31', 'shown').text).toContain('(Deprecated since 1.31.0)');
  });
});
