import { describe, expect, test } from 'vitest';
import { readOptions } from '../command-line.ts';

function configOf(...args: string[]) {
  const outcome = readOptions(args);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options.config;
}

const file = import.meta.filename;

describe('flags of aggregation', () => {
  test('ADM-4: the flags become settings', () => {
    expect(configOf().aggregation).toEqual({ routing: 'any', redirects: 'rejected' });
    const config = configOf(
      `--proxy-client-cert-file=${file}`,
      `--proxy-client-key-file=${file}`,
      '--enable-aggregator-routing',
      '--aggregator-reject-forwarding-redirect=false',
    );
    expect(config.aggregation).toEqual({
      certificate: { certFile: file, keyFile: file },
      routing: 'endpoints',
      redirects: 'passed',
    });
  });

  test.each([
    [[`--proxy-client-cert-file=${file}`], 'must be given together'],
    [[`--proxy-client-key-file=${file}`], 'must be given together'],
    [
      ['--requestheader-uid-headers=X-Remote-Uid'],
      '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
    ],
  ])('ADM-4: the start fails with %j', (args, message) => {
    expect(() => configOf(...args)).toThrow(message);
  });

  test('ADM-4: UID headers require their feature gate', () => {
    const { authentication } = configOf(
      '--feature-gates=RemoteRequestHeaderUID=true',
      '--requestheader-client-ca-file=ca.crt',
      '--requestheader-uid-headers=X-Remote-Uid',
    );
    expect(authentication.requestHeader?.uidHeaders).toEqual(['X-Remote-Uid']);
  });
});
