import { describe, expect, test } from 'vitest';
import { FlagError } from '../../flags/flags.ts';
import { readOptions } from '../command-line.ts';

function admission(...args: string[]) {
  const outcome = readOptions(['--authorization-mode=RBAC', ...args]);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options;
}

function refused(...args: string[]): string {
  try {
    admission(...args);
  } catch (error) {
    if (error instanceof FlagError) return error.message;
    throw error;
  }
  throw new Error('accepted');
}

describe('ADM-1: flags', () => {
  test('ADM-1: plugins are enabled and disabled by name, together or one by one', () => {
    const { config } = admission(
      '--enable-admission-plugins=NodeRestriction,AlwaysPullImages',
      '--enable-admission-plugins=PodNodeSelector',
      '--disable-admission-plugins=Priority,ImagePolicyWebhook',
    );
    expect(config.admission).toMatchObject({
      enabled: ['NodeRestriction', 'AlwaysPullImages', 'PodNodeSelector'],
      disabled: ['Priority', 'ImagePolicyWebhook'],
    });
  });

  test.each(['enable-admission-plugins', 'disable-admission-plugins', 'admission-control'])(
    'ADM-1: an unknown name stops the start: --%s',
    (flag) => {
      expect(refused(`--${flag}=NodeRestriction,Nonsense`)).toBe(
        `${flag} plugin "Nonsense" is unknown`,
      );
    },
  );

  test('ADM-1: the same name on and off is a contradiction', () => {
    expect(
      refused(
        '--enable-admission-plugins=Priority,LimitRanger',
        '--disable-admission-plugins=Priority',
      ),
    ).toBe('[Priority] in enable-admission-plugins and disable-admission-plugins overlapped');
  });

  test('ADM-1: --admission-control names them all, warns, and excludes the others', () => {
    const { config, warnings } = admission('--admission-control=NamespaceLifecycle');
    expect(config.admission).toMatchObject({ enabled: ['NamespaceLifecycle'], only: true });
    expect(warnings).toContain(
      'Flag --admission-control has been deprecated, Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.',
    );
    expect(
      refused('--admission-control=Priority', '--enable-admission-plugins=NodeRestriction'),
    ).toBe(
      'admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive',
    );
  });

  test('ADM-1: default toleration seconds', () => {
    const { config } = admission(
      '--default-not-ready-toleration-seconds=10',
      '--default-unreachable-toleration-seconds=20',
    );
    expect(config.admission).toMatchObject({
      notReadyTolerationSeconds: 10,
      unreachableTolerationSeconds: 20,
    });
  });
});
