/** Facts about the types of `authentication`; made by scripts/facts/generate.mjs, do not edit. */
export const authenticationFacts = `
@v1
=ExtraValue []string
#TokenReview k c i=1.6
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 TokenReviewSpec
status 3 TokenReviewStatus e o
#TokenReviewSpec
token 1 string e o
audiences 2 []string e o l=atomic
#TokenReviewStatus
authenticated 1 bool e o
user 2 UserInfo e o
audiences 4 []string e o l=atomic
error 3 string e o
#UserInfo
username 1 string e o
uid 2 string e o
groups 3 []string e o l=atomic
extra 4 {}ExtraValue e o
#TokenRequest k i=1.10
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 TokenRequestSpec
status 3 TokenRequestStatus e o
#TokenRequestSpec
audiences 1 []string l=atomic
expirationSeconds 4 *int64 o
boundObjectRef 3 *BoundObjectReference o
#TokenRequestStatus
token 1 string
expirationTimestamp 2 meta.v1.Time
#BoundObjectReference
kind 1 string e o
apiVersion 2 string e o
name 3 string e o
uid 4 string e o t=types.UID
#SelfSubjectReview k c i=1.28
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
status 2 SelfSubjectReviewStatus e
#SelfSubjectReviewStatus
userInfo 1 UserInfo e o
@v1alpha1
#SelfSubjectReview k c i=1.26
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
status 2 SelfSubjectReviewStatus e
#SelfSubjectReviewStatus
userInfo 1 authentication.v1.UserInfo e o
@v1beta1
=ExtraValue []string
#TokenReview k c i=1.4 d=1.19 r=authentication,v1,TokenReview
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 TokenReviewSpec
status 3 TokenReviewStatus e o
#TokenReviewSpec
token 1 string e o
audiences 2 []string e o l=atomic
#TokenReviewStatus
authenticated 1 bool e o
user 2 UserInfo e o
audiences 4 []string e o l=atomic
error 3 string e o
#UserInfo
username 1 string e o
uid 2 string e o
groups 3 []string e o l=atomic
extra 4 {}ExtraValue e o
#SelfSubjectReview k c i=1.27
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
status 2 SelfSubjectReviewStatus e
#SelfSubjectReviewStatus
userInfo 1 authentication.v1.UserInfo e o
`;
