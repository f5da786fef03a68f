#include "text/sentence_language.h"

#include <string.h>
#include <unicode/uchar.h>

#include "text/utf8.h"

static const tarn__sentence_language LANGUAGES[] = {
    {.name = "en",
     .never =
         " Mr Mrs Ms Mx Messrs Mme Mlle Mons Dr Drs Prof Rev Revd Fr Gen Maj Col Lt Lieut Capt Cpt Sgt Cpl Pvt Adm "
         "Cmdr Comdr Brig Gov Pres Sen Rep Hon Rt Supt Insp Det Amb Treas Mgr Msgr Sra Srta Bp Abp "
         "e.g eg i.e ie viz cf vs v approx ca c.f ibid incl excl resp ",
     .numbered =
         " No Nos no nos Fig Figs fig figs Vol Vols vol vols Art art Sec sec Sect Ch Chap ch chap Eq Eqs Ex Exp p "
         "pp par para pt Pt Op op Ed ed Bk bk Nr nr Tab tab Ref Refs ver Ver ",
     .maybe = " Jr Sr Inc Ltd Co Corp Cos Bros LLC Plc Esq etc al St Ste Mt Ft Ave Blvd Rd Hwy Bldg Dept Univ Assn "
              "Inst Natl "
              "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun "
              "Ala Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky La Md Mich Minn Miss Mo Mont Neb Nev Okla Ore Pa "
              "Penn Tenn Tex Va Vt Wash Wis Wyo Ont Que "
              "ft oz lb lbs yd yds sq cu hr hrs min mins sec secs a.m p.m A.M P.M "
              "Ph.D Ph M.D B.A M.A B.Sc M.Sc D.C U.S U.K U.N U.S.A U.S.S.R B.C A.D B.C.E C.E L.A "
              "est dept govt rev trans introd orig esp misc abbr lit Lat Gr ",
     .starters =
         " The A An This That These Those He She It They We You I There Here His Her Its Their Our My Your But And Or "
         "So Yet Nor If When While Where As At By For From In On Of To With Without After Before During Since "
         "Until Upon Under Over Between Among Through Because Although Though However Therefore Thus Then Now "
         "Once Also Even Still Again Meanwhile Moreover Furthermore Nevertheless Otherwise Instead Perhaps "
         "Indeed Finally Later Today Yesterday Tomorrow What Who Whom Whose Which Why How Did Do Does Is Are "
         "Was Were Has Have Had Can Could Will Would Should May Might Must Let Some Many Most Several Each "
         "Every Both Either Neither All Any No None Not One Two Another Other Others Such Yes Well Oh Ah Like "
         "Unlike According Despite Only Just It's He's She's I'm I've I'll We're They're That's There's What's "
         "Don't ",
     .speech =
         " said says asked asks cried replied answered exclaimed shouted whispered muttered murmured demanded inquired "
         "enquired repeated called screamed yelled remarked observed gasped growled "
         "continued wondered retorted interrupted suggested snapped roared sobbed "},
    {.name = "de",
     .never =
         " Dr Prof Mr Mrs Tsch Hr Hrn Fr Frl Herrn Dipl Ing Mag Priv.-Doz St Hl hl Sr z.B bzw vgl ca d.h i.d.R u.a v.a "
         "s.o s.u "
         "o.g u.U z.T u.Ä z.Z zzt ggf evtl inkl exkl einschl sog insb insbes bes allg ehem eigtl urspr zzgl abzügl "
         "max mind geb gest verh verw gesch dt engl frz franz ital lat griech russ niederl österr amerik "
         "röm kath ev evang jap chin türk bayr preuß sächs hrsg Hrsg bearb übers betr bzgl lt gem "
         "gez i.A i.V Gebr ebd vs versch ähnl jmd jmdn jmdm jmds etw bspw beispielsw näml u.v v.l w.o rd phil jur "
         "med "
         "rer nat habil theol oec ",
     .numbered =
         " Nr Nrn Abb Abs Art Bd Bde Kap Ziff Zif S Tab Tel Fn Anm Lfd lfd Rn Rz Vers V Sp Bl Taf Pkt § Ausg Aufl "
         "Jg Heft H Fig Vol No ",
     .maybe =
         " max min usw usf etc u.dgl dgl dergl u.s.w u.s.f Co Chr v.Chr n.Chr Jh Jhd Jhdt Jahrh Mio Mrd Tsd Std Min "
         "Sek Str Pl "
         "Jan "
         "Feb Apr Aug Sep Sept Okt Nov Dez Mo Di Mi Do Fr Sa So e.V i.R a.D m.b.H Inc Ltd Corp jr sen Jr al  ff "
         "Bez Kt Abt Inst Univ Ges Verl Red Verf Nachf Stk Kl Gew Pf Kto Konf Lit Orig Zit o.J o.O U.S U.K a.M i.Br "
         "o.Ä o.ä u.ä ",
     .starters =
         " Der Die Das Dem Den Des Ein Eine Einer Eines Einem Einen Er Sie Es Wir Ihr Ich Du Man Dieser Diese Dieses "
         "Diesem "
         "Diesen Jener Jene Jenes Sein Seine Seiner Seinem Seinen Ihre Ihrer Ihrem Ihren Mein Meine Unser Unsere Und "
         "Aber Oder Doch Denn Sondern Wenn Als Weil Da Dass Ob Obwohl Während Nachdem Bevor Seit Seitdem Bis Sobald "
         "Falls Damit In Im An Am Auf Aus Bei Beim Mit Nach Von Vom Zu Zum Zur Für Durch Gegen Ohne Um Unter Über Vor "
         "Zwischen Neben Hinter Trotz Wegen Statt Laut Ab Dann Danach Dort Hier Heute Gestern Morgen Jetzt Nun Noch "
         "Schon Auch Nur So Also Allerdings Jedoch Dennoch Trotzdem Deshalb Daher Darum Dabei Dadurch Daraus Darin "
         "Davon Dazu Zudem Außerdem Ferner Weiterhin Schließlich Später Zunächst Zuerst Bereits Erst Viele Einige "
         "Alle Beide Mehrere Manche Jeder Jede Jedes Kein Keine Niemand Jemand Nichts Etwas Was Wer Wie Wo Warum Wann "
         "Wohin Woher Welche Welcher Welches Ist Sind War Waren Hat Haben Hatte Hatten Wird Werden Wurde Wurden Kann "
         "Können Soll Ja Nein Nicht Vielleicht Insgesamt Hierbei Hierzu Sowohl Weder Entweder Je Ach Oh Bitte ",
     .speech = " sagte fragte rief antwortete meinte flüsterte schrie erwiderte murmelte brüllte entgegnete erklärte ",
     .ordinals = true},
};
enum { COUNT = sizeof LANGUAGES / sizeof *LANGUAGES, LONGEST = 64 };

tarn_status tarn__sentence_language_find(const tarn__sentence_language **language, const char *name) {
  for (size_t i = 0; i < COUNT; i++) {
    *language = &LANGUAGES[i];
    if (strcmp(name, LANGUAGES[i].name) == 0) return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_USAGE, "there are rules for sentences in the languages en and de, not \"%s\"", name);
}

static bool holds(const char *list, const char *word, size_t length) {
  char key[LONGEST + 3];
  key[0] = ' ';
  memcpy(key + 1, word, length);
  key[length + 1] = ' ';
  key[length + 2] = '\0';
  return strstr(list, key);
}

bool tarn__sentence_language_has(const char *list, const char *word, size_t length) {
  char small[LONGEST];
  int32_t code;
  if (length == 0 || length > LONGEST - 4 || memchr(word, ' ', length) || memchr(word, '\0', length)) return false;
  if (holds(list, word, length)) return true;
  size_t first = tarn__utf8_decode(&code, word, length);
  if (code < 0 || u_tolower(code) == code) return false;
  size_t size = tarn__utf8_encode(small, u_tolower(code));
  memcpy(small + size, word + first, length - first);
  return holds(list, small, size + length - first);
}
