import { saysAsKubectl } from '../clients/beside-kubectl.ts';

const pod = (name: string, more: { readonly node?: string; readonly side?: boolean } = {}) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'web' } },
    spec: {
      ...(more.node === undefined ? {} : { nodeName: more.node }),
      containers: [
        { name: 'main', image: 'i' },
        ...(more.side === true ? [{ name: 'side', image: 'i' }] : []),
      ],
    },
  });

saysAsKubectl([
  ['create sa default'],
  ['top pod'],
  ['top node'],
  ['top pods x -l a=b'],
  ['top node x -l a=b'],
  ['top pod --sort-by=name'],
  ['top pod a b'],
  ['create -f -', pod('one')],
  ['create -f -', pod('two', { side: true })],
  ['create -f -', pod('far', { node: 'nowhere' })],
  ['logs one'],
  ['logs two'],
  ['logs two -c side'],
  ['logs two side --tail=3 --since=5m --timestamps'],
  ['logs two -c nope'],
  ['logs two --all-containers'],
  ['logs two --all-containers -c main'],
  ['logs two side -c main'],
  ['logs far'],
  ['logs -l app=none'],
  ['logs'],
  ['logs one -l app=web'],
  ['logs a b c'],
  ['logs one --tail=-2'],
  ['logs one --limit-bytes=-2'],
  ['logs one --since=5m --since-time=2020-01-01T00:00:00Z'],
  ['exec one -- true'],
  ['exec one'],
  ['exec one true'],
  ['exec'],
  ['exec nope -- true'],
  ['attach'],
  ['port-forward one 80'],
  ['port-forward one'],
]);
