import { describe, expect, test } from 'vitest';
import { configMap } from '../support/harness.ts';
import { flagRuns } from './flags-run.ts';

const { start, refuses } = await flagRuns();

describe('flags of kube-apiserver’s process', () => {
  test('VER-7: that request the only behavior are accepted', async () => {
    const { get, post, remove, as } = await start(
      '--profiling=false',
      '--contention-profiling=false',
      '--debug-socket-path=',
      '--enable-garbage-collector',
      '--watch-cache=true',
      '--watch-cache-sizes=pods#1000,deployments.apps#100',
      '--storage-initialization-timeout=30s',
      '--delete-collection-workers=1',
      '--max-connection-bytes-per-sec=0',
      '--permit-address-sharing',
      '--permit-port-sharing=false',
      '--peer-ca-file=',
      '--peer-advertise-ip=',
      '--peer-advertise-port=',
      '--log-flush-frequency=1s',
      '--log-text-info-buffer-size=0',
      '--log-text-split-stream=false',
      '--vmodule=',
    );
    expect((await get('/readyz', as)).status).toBe(200);
    expect((await get('/debug/pprof/', as)).status).toBe(404);
    expect((await get('/debug/flags/v', as)).status).toBe(404);
    const path = '/api/v1/namespaces/default/configmaps';
    const labels = { of: 'test' };
    for (const name of ['a', 'b', 'c']) {
      await post(path, configMap(name, { metadata: { name, labels } }), as);
    }
    const selected = `${path}?labelSelector=of%3Dtest`;
    expect((await get(selected, as)).body.items.length).toBe(3);
    expect((await remove(selected, undefined, as)).status).toBe(200);
    expect((await get(selected, as)).body.items).toEqual([]);
  });

  test('VER-7: that are deprecated but accepted by the release are accepted', async () => {
    const { get, as } = await start(
      '--apiserver-count=3',
      '--cloud-config=/etc/cloud.conf',
      '--cloud-provider=external',
      '--default-watch-cache-size=0',
      '--enable-logs-handler=false',
      '--kubelet-port=10250',
      '--kubelet-read-only-port=0',
    );
    expect((await get('/readyz', as)).status).toBe(200);
  });

  test.each([
    [
      '--apiserver-count=0',
      "--apiserver-count should be a positive number, but value '0' provided",
    ],
    ['--cloud-provider=openstack', 'unknown --cloud-provider: openstack'],
    ['--enable-logs-handler', 'the server writes no log files'],
    ['--kubelet-port=-1', '--kubelet-port must not be negative'],
    ['--contention-profiling', 'Node.js has no profiles of lock contention'],
    ['--debug-socket-path=/run/debug.sock', 'profiles are served only at /debug/pprof/'],
    ['--enable-garbage-collector=false', 'deletions always honor their propagation policy'],
    ['--watch-cache-sizes=pods', 'invalid value of watch cache size: pods'],
    ['--watch-cache-sizes=pods#x', 'invalid size of watch cache size: pods#x'],
    ['--watch-cache-sizes=pods#-1', 'watch cache size cannot be negative: pods#-1'],
    [
      '--storage-initialization-timeout=-1s',
      '--storage-initialization-timeout can not be negative value',
    ],
    ['--delete-collection-workers=0', '--delete-collection-workers must be greater than 0'],
    ['--max-connection-bytes-per-sec=5', 'the speed of streams into containers is not limited'],
    ['--permit-port-sharing', 'Node.js 20 cannot share a port (SO_REUSEPORT)'],
    ['--peer-ca-file=/ca.crt', 'requests are never proxied to servers of other releases'],
    [
      '--log-text-info-buffer-size=1Ki',
      'options.text.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled',
    ],
    [
      '--log-json-split-stream',
      'options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled',
    ],
    [
      '--log-json-info-buffer-size=abc',
      'invalid argument "abc" for "--log-json-info-buffer-size" flag: quantities must match',
    ],
    ['--vmodule=a=1,b=2', '--vmodule=a=1,b=2: log lines do not name source files; use -v'],
  ])('VER-7: %s stops the start', (flag, message) => refuses(message, flag));
});
