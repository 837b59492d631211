import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

const lines = ['create cm x', 'create secret generic x'].flatMap((create): [string][] => [
  [`${create} --from-env-file=@files/variables --dry-run=client -o jsonpath={.data}`],
  [`${create} --from-env-file=@files/marked,@files/simple --dry-run=client -o jsonpath={.data}`],
  [`${create} --from-env-file=@files/spaced`],
  [`${create} --from-env-file=@files/nameless`],
  [`${create} --from-env-file=@files/digit`],
  [`${create} --from-env-file=@files/exported`],
  [`${create} --from-env-file=@files/simple --from-env-file=@files/simple`],
  [`${create} --from-env-file=@files/missing`],
  [`${create} --from-env-file=@files`],
  [`${create} --from-env-file= --dry-run=client -o jsonpath={.kind}`],
  [`${create} --from-env-file=@files/simple --from-literal=a=1`],
  [`${create} --from-file=@files/simple,b=@files/marked --dry-run=client -o jsonpath={.data}`],
  [`${create} --from-file=@files/missing`],
  [`${create} --from-file=key=@files/missing`],
  [`${create} --from-file=key=@files`],
  [`${create} --from-file=key=`],
  [`${create} --from-file==@files/simple`],
  [`${create} --from-file=a=b=@files/simple`],
  [`${create} --from-file=a/b=@files/simple`],
  [`${create} --from-file=..=@files/simple`],
  [`${create} --from-file=..a=@files/simple`],
  [`${create} --from-file=${'a'.repeat(254)}=@files/simple`],
  [`${create} --from-file= --dry-run=client -o jsonpath={.kind}`],
  [`${create} --from-file=a=@files/simple --from-literal=a=1`],
  [`${create} --from-literal=a:b=1`],
  [`${create} --from-literal==1`],
]);

printsLikeKubectl('data-files', lines, {
  texts: {
    variables: 'A=1\n  B=two words\n# no\n\n  # no\nC="quoted"=x\r\nNOT_SET_ANYWHERE\nD=',
    marked: '\ufeffM=1\n',
    simple: 'A=1\n',
    spaced: 'A=1\nA B=1\n',
    nameless: '=1\n',
    digit: '1A=1\n',
    exported: 'export A=1\n',
  },
});
