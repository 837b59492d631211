import { type Line, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

/** A stream of objects, which begins with a separator so that kubectl reads it as YAML. */
const stream = (objects: readonly object[]): string =>
  objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('');

const nodes = ['1', '2'].map((name) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: `@ns-${name}`, labels: { group: '@ns' } },
}));

printsLikeKubectl([
  ['create -f -', stream(nodes)],
  ['create cm x'],
  ...['cordon', 'drain', 'uncordon'].flatMap((command): Line[] => [
    [command],
    [`${command} -l group=@ns --dry-run=client`],
    [`${command} -l group=@ns --dry-run=server`],
    [`${command} -l group=none`],
    [`${command} -l group=@ns`],
    [`${command} --selector=`],
    [`${command} @ns-1 --selector=`],
    [`${command} @ns-1 -l group=@ns`],
    [`${command} @ns-1 node/@ns-2`],
    [`${command} node/@ns-1 cm/x`],
    [`${command} cm/x`],
    ['get nodes -l group=@ns -o jsonpath={.items[*].spec.unschedulable}'],
  ]),
  ['delete nodes -l group=@ns'],
]);
