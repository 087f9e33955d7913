"""Schemas of structured replies: request keys cover them, so a change makes all stored replies useless."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from graphrag_pipeline.engines.model.answers.answerer import SubqueriesReply
from graphrag_pipeline.engines.model.answers.drift import StepReply
from graphrag_pipeline.engines.model.answers.points import MapReply
from graphrag_pipeline.engines.model.rating import RatingReply, RatingsReply
from graphrag_pipeline.engines.model.reports import ReportReply
from graphrag_pipeline.engines.model.tuning.requests import CorpusReply, ExampleReply, RatingScaleReply, TypesReply
from graphrag_pipeline.evaluation.answer_judging import ChecksReply, StatementsReply
from graphrag_pipeline.evaluation.comparison import VerdictReply
from graphrag_pipeline.evaluation.generated_questions import GlobalQuestions, LocalQuestions, PersonasReply
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.graph.semantic_resolution import Verdict
from graphrag_pipeline.models.reply_json import json_schema_format
from graphrag_pipeline.query.understanding.keywords import KeywordsReply

HASHES = {
    ChecksReply: "07f042a85bfaa534a13b4479776671de",
    GlobalQuestions: "12abaaa993f263777ea5e0daaeff446b",
    LocalQuestions: "ea45236b319b1568f8234c912de2a129",
    KeywordsReply: "91a17fe163b9d9f2a4c43f4c22564cf3",
    MapReply: "906d6db70ca9497afc18cbc6b34e6adb",
    PersonasReply: "0fa6d9df2831bf772a22e294b8eed43e",
    RatingReply: "c08a34b11ae6eb7369ed0462257fad30",
    RatingsReply: "fdc37a75380cf35a79b2a8f38b54501b",
    ReportReply: "fe2a6e579b700001179b5c8f4d9d8029",
    StatementsReply: "5e3889176bdfab6e350d92dabab3d03f",
    StepReply: "1d2abe9d33362370627974f793bec22e",
    SubqueriesReply: "8b7924103061e6d1c3e25f42c51c9d5f",
    Verdict: "2641ccef775e9b56cc203217843e9de5",
    VerdictReply: "75727558702d11aeed583929769cef05",
    CorpusReply: "ae900d7cb184a16ea4a06c64a450f590",
    ExampleReply: "0648c435663d37c479639b1e85f7b6ac",
    RatingScaleReply: "6d6cbca600f8b6804df0ee4e35891143",
    TypesReply: "fed79d06f640c8459bfbe0e32d7cf56d",
}


@pytest.mark.parametrize("model", HASHES, ids=lambda model: model.__name__)
def test_a_schema_does_not_change_even_by_its_docstrings(model: type[BaseModel]) -> None:
    assert stable_hash(json.dumps(json_schema_format(model), sort_keys=True)) == HASHES[model]
