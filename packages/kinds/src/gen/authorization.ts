/** Facts about the types of `authorization`; made by scripts/facts/generate.mjs, do not edit. */
export const authorizationFacts = `
@v1
=ExtraValue []string
#SubjectAccessReview k c i=1.6
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SubjectAccessReviewSpec
status 3 SubjectAccessReviewStatus e o
#SelfSubjectAccessReview k c i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SelfSubjectAccessReviewSpec
status 3 SubjectAccessReviewStatus e o
#LocalSubjectAccessReview k n i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SubjectAccessReviewSpec
status 3 SubjectAccessReviewStatus e o
#ResourceAttributes
namespace 1 string e o
verb 2 string e o
group 3 string e o
version 4 string e o
resource 5 string e o
subresource 6 string e o
name 7 string e o
fieldSelector 8 *FieldSelectorAttributes e o
labelSelector 9 *LabelSelectorAttributes e o
#LabelSelectorAttributes
rawSelector 1 string e o
requirements 2 []meta.v1.LabelSelectorRequirement e o l=atomic
#FieldSelectorAttributes
rawSelector 1 string e o
requirements 2 []meta.v1.FieldSelectorRequirement e o l=atomic
#NonResourceAttributes
path 1 string e o
verb 2 string e o
#SubjectAccessReviewSpec
resourceAttributes 1 *ResourceAttributes e o
nonResourceAttributes 2 *NonResourceAttributes e o
user 3 string e o
groups 4 []string e o l=atomic
extra 5 {}ExtraValue e o
uid 6 string e o
#SelfSubjectAccessReviewSpec
resourceAttributes 1 *ResourceAttributes e o
nonResourceAttributes 2 *NonResourceAttributes e o
#SubjectAccessReviewStatus
allowed 1 bool
denied 4 bool e o
reason 2 string e o
evaluationError 3 string e o
#SelfSubjectRulesReview k c i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SelfSubjectRulesReviewSpec
status 3 SubjectRulesReviewStatus e o
#SelfSubjectRulesReviewSpec
namespace 1 string e
#SubjectRulesReviewStatus
resourceRules 1 []ResourceRule l=atomic
nonResourceRules 2 []NonResourceRule l=atomic
incomplete 3 bool
evaluationError 4 string e o
#ResourceRule
verbs 1 []string l=atomic
apiGroups 2 []string e o l=atomic
resources 3 []string e o l=atomic
resourceNames 4 []string e o l=atomic
#NonResourceRule
verbs 1 []string l=atomic
nonResourceURLs 2 []string e o l=atomic
@v1beta1
=ExtraValue []string
#SubjectAccessReview k c i=1.2 d=1.19 r=authorization,v1,SubjectAccessReview
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SubjectAccessReviewSpec
status 3 SubjectAccessReviewStatus e o
#SelfSubjectAccessReview k c i=1.2 d=1.19 r=authorization,v1,SelfSubjectAccessReview
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SelfSubjectAccessReviewSpec
status 3 SubjectAccessReviewStatus e o
#LocalSubjectAccessReview k n i=1.2 d=1.19 r=authorization,v1,LocalSubjectAccessReview
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SubjectAccessReviewSpec
status 3 SubjectAccessReviewStatus e o
#ResourceAttributes
namespace 1 string e o
verb 2 string e o
group 3 string e o
version 4 string e o
resource 5 string e o
subresource 6 string e o
name 7 string e o
fieldSelector 8 *authorization.v1.FieldSelectorAttributes e o
labelSelector 9 *authorization.v1.LabelSelectorAttributes e o
#NonResourceAttributes
path 1 string e o
verb 2 string e o
#SubjectAccessReviewSpec
resourceAttributes 1 *ResourceAttributes e o
nonResourceAttributes 2 *NonResourceAttributes e o
user 3 string e o
group 4 []string e o l=atomic
extra 5 {}ExtraValue e o
uid 6 string e o
#SelfSubjectAccessReviewSpec
resourceAttributes 1 *ResourceAttributes e o
nonResourceAttributes 2 *NonResourceAttributes e o
#SubjectAccessReviewStatus
allowed 1 bool
denied 4 bool e o
reason 2 string e o
evaluationError 3 string e o
#SelfSubjectRulesReview k c i=1.8 d=1.19 r=authorization,v1,SelfSubjectRulesReview
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 SelfSubjectRulesReviewSpec
status 3 SubjectRulesReviewStatus e o
#SelfSubjectRulesReviewSpec
namespace 1 string e
#SubjectRulesReviewStatus
resourceRules 1 []ResourceRule l=atomic
nonResourceRules 2 []NonResourceRule l=atomic
incomplete 3 bool
evaluationError 4 string e o
#ResourceRule
verbs 1 []string l=atomic
apiGroups 2 []string e o l=atomic
resources 3 []string e o l=atomic
resourceNames 4 []string e o l=atomic
#NonResourceRule
verbs 1 []string l=atomic
nonResourceURLs 2 []string e o l=atomic
`;
